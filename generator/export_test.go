//go:build !simulate

package generator

import "github.com/tickflake/tickflake/internal/window"

// WithWindow has the generator take slots of w, which the test grants by hand, in place
// of a lease's.
func WithWindow(w *window.Ticks) Option { return func(c *config) { c.window = w } }

//go:build simulate

package generator

import "github.com/tickflake/tickflake/internal/window"

// WithWindow has the generator take slots of w in place of a lease's window. Package
// internal/sim/simulation puts the grants into w.
func WithWindow(w *window.Ticks) Option { return func(c *config) { c.window = w } }

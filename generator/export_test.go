//go:build !simulate

package generator

import "github.com/tickflake/tickflake/internal/window"

// WithWindow has the generator take slots of w, which the test grants by hand, in place
// of a lease's.
func WithWindow(w *window.Window) Option { return func(c *config) { c.window = w } }

// GateOpen reports whether the fast path is open: no call is in the queue.
func (g *Generator) GateOpen() bool { return g.queue.gate.Load() != 0 }

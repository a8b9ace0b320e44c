package generator

import "time"

// GateOpen reports whether the fast path is open: no call is in the queue.
func (g *Generator) GateOpen() bool { return g.queue.gate.Load() != 0 }

// OpenGate opens the gate, and returns how far it lies above the base of the readings that it stops.
func (g *Generator) OpenGate() time.Duration {
	g.queue.mu.Lock()
	defer g.queue.mu.Unlock()
	g.open()
	return time.Duration(int64(g.queue.gate.Load()) - g.base.Load())
}

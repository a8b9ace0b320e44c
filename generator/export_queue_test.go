package generator

// GateOpen reports whether the fast path is open: no call is in the queue.
func (g *Generator) GateOpen() bool { return g.queue.gate.Load() != 0 }

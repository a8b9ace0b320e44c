package count

// mutant says how a world differs from the real one.
type mutant struct {
	blind  func(*write) bool                                           // the store carries a write out whatever version it has
	nextOp func(t *try, p *process, in Input) Op                       // in place of Next
	doneOp func(t *try, p *process, in Input, op Op, r Result) []Event // in place of Done
}

func (t *try) ops(p *process, in Input) Op {
	if t.nextOp != nil {
		return t.nextOp(t, p, in)
	}
	return p.machine.Next(in)
}

func (t *try) events(p *process, in Input, op Op, r Result) []Event {
	if t.doneOp != nil {
		return t.doneOp(t, p, in, op, r)
	}
	return p.machine.Done(in, op, r)
}

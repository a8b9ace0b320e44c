package grant

import "slices"

// mutant is a way to break the protocol.
type mutant string

const (
	refresh  mutant = "M9_REFRESH"
	success  mutant = "M9_SUCCESS"
	version  mutant = "M9_VERSION"
	early    mutant = "M11_EARLY"
	unseal   mutant = "M11_UNSEAL"
	m12      mutant = "M12"
	m13      mutant = "M13"
	noCAS    mutant = "NO_CAS"
	noRaise  mutant = "NO_RAISE"
	forget   mutant = "FORGET"
	lower    mutant = "LOWER"
	byToken  mutant = "TOKEN"
	sameTick mutant = "SAME_TICK"
)

// next changes an operation.
func (x mutant) next(p *proc, in Input, op Op) Op {
	switch {
	case op.Kind != Swap:
	case x == m12 && op.Why == Claim:
		op.Record.Floor = in.Now
	case x == m13 && op.Why == Release:
		op.Record.Limit = max(p.win.issued, 1)
	case x == lower && op.Why == Extend:
		op.Record.Limit = min(in.Now+p.m.Window, p.m.End)
	}
	return op
}

// result changes what the machine is told.
func (x mutant) result(p *proc, in Input, op Op, r Result) Result {
	switch {
	case x == success && op.Why == Claim && r.Status == Failed:
		return Result{Version: op.Version + 1}
	case x == version && op.Why == Outcome && r.Status == OK:
		if i := slices.IndexFunc(p.m.claims, func(c Pending) bool { return c.Node == op.Node }); i >= 0 && r.Cell.Version != p.m.claims[i].Version {
			r.Cell.Record.Write = p.m.claims[i].Name
		}
	case x == byToken && op.Why == Doubt && r.Status == OK && r.Cell.Record.Holder == p.m.token && len(p.m.held.Pending) > 0:
		r.Cell.Record.Write = p.m.held.Pending[0]
	}
	return r
}

package strategies

import "github.com/tickflake/tickflake/internal/seam"

// bounded is implemented by the strategies of this package.
type bounded interface {
	limits(Cause) seam.Limits
	validate() error
}

func init() {
	seam.LimitsOf = func(s any) (exhausted, behind seam.Limits) { return limits(s, Exhausted), limits(s, Behind) }
	seam.StartBound = func(start any, perTick int64) (below uint64, err error) {
		s := start.(SequenceStart)
		return uint64(s.bound()), s.validate(perTick)
	}
}

func limits(s any, cause Cause) seam.Limits {
	if s, ok := s.(bounded); ok {
		return s.limits(cause)
	}
	return seam.Limits{Foreign: true}
}

func (b bound) limits(Cause) seam.Limits {
	return seam.Limits{Always: b.borrow, Borrow: b.borrow, Wait: b.wait}
}

func (c chain) limits(cause Cause) (all seam.Limits) {
	for _, member := range c {
		m := limits(member, cause)
		if all.Wait == 0 && !all.Foreign { // a member that waits is asked before those after it
			all.Always = max(all.Always, m.Always)
		}
		all.Borrow, all.Wait = max(all.Borrow, m.Borrow), max(all.Wait, m.Wait)
		all.Foreign = all.Foreign || m.Foreign
	}
	return all
}

func (p perCause) limits(cause Cause) seam.Limits { return limits(p.of(cause), cause) }

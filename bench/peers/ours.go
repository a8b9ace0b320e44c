package peers

import (
	"fmt"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Setting is the clock and the source of the node number under a strategy of tickflake.
type Setting string

// The settings.
const (
	Leased Setting = "lease"     // a monoclock, and a leased node number, with the cells in memory
	Mono   Setting = "monoclock" // a monoclock, and a fixed node number
	Raw    Setting = "raw clock" // the wall clock, and a fixed node number
)

// Tickflake returns tickflake in the default layout, with the strategy of the name.
func Tickflake(name string, s strategies.Strategy, in Setting) Peer {
	layout := snowflake.Default()
	p := Peer{Name: fmt.Sprintf("tickflake %s, %s", name, in), Driven: ByClock}
	var run generatortest.Subject[snowflake.ID]
	switch in {
	case Leased:
		p.How = "lease.WithClock; the lease's cells are in memory"
		run = leasetest.Leased{Strategy: s, Clock: generatortest.Mono, Layout: layout}.Subject()
	default:
		p.How = "generator.WithClock"
		p.Remark = "a fixed node number, which does not promise uniqueness across a restart"
		p.restarts = true
		kind := generatortest.Mono
		if in == Raw {
			kind = generatortest.Raw
		}
		run = generatortest.Tickflake(s, kind, generator.WithLayout(layout))
	}
	p.Claim = fmt.Sprintf("exhausted: %s; behind: %s", run.Claim.Exhausted, run.Claim.Behind)
	p.low, p.Integers = lowest, true
	return peer(p, run)
}

// Starting returns tickflake with a sequence start and a fixed node number. It waits when
// a tick is used up.
func Starting(start strategies.SequenceStart) Peer {
	p := Peer{Name: fmt.Sprintf("tickflake, start %s", start), Driven: ByClock, How: "generator.WithClock", low: lowest, Integers: true}
	return peer(p, generatortest.Tickflake(strategies.Wait(), generatortest.Mono,
		generator.WithLayout(snowflake.Default()), generator.WithSequenceStart(start)))
}

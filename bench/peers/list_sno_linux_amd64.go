package peers

import (
	"time"

	"github.com/muyo/sno"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// muyoSno promises in its README 65,536 IDs per 4 ms, and that who asks for more is
// stalled, by a ticker of roughly 1 ms. It is "not advertised as monotonic".
//
// Only here does it read package time. Elsewhere it reads the clock by a function of
// Go's runtime (internal.Snotime), which knows of no bubble.
func muyoSno() []Peer {
	const tick = sno.TimeUnit * time.Nanosecond
	epoch := time.Unix(sno.Epoch, 0).UTC()
	return []Peer{peer(Peer{
		Name: "muyo/sno", Module: "github.com/muyo/sno", Driven: ByBubble,
		How:     "time.Now in internal.Snotime; a ticker in Generator.New when exhausted",
		Claim:   "65,536 IDs per 4 ms; when exhausted, stalls until the next of them, as seen by a ticker of 1 ms (README)",
		Remark:  "the generator has a partition of its own, and a snapshot of it (Generator.Snapshot) is not kept: its README asks for that where the clock may go back across a restart",
		Instead: map[string]Variant{"F11": stepped, "F18": young},
		Ceiling: (sno.MaxSequence + 1) * 250,
		symbol:  sno.NewGenerator, restarts: true,
		low: lowOf(sno.FromEncodedString, func(id sno.ID) byte { return id[9] }),
	}, subject{
		Claim: generatortest.Claim{Exhausted: generatortest.Bound{Wait: tick + time.Millisecond}, Unordered: true},
		Tick:  tick,
		Time:  timeOf(sno.FromEncodedString, sno.ID.Time),
		Epoch: epoch,
		End:   epoch.Add((sno.MaxTimestamp + 1) * tick),
		New: func(*clocktest.Virtual) (process, error) {
			gen, err := sno.NewGenerator(&sno.GeneratorSnapshot{Partition: sno.Partition{0, 7}}, nil)
			if err != nil {
				return process{}, err
			}
			return issues(func() (sno.ID, error) { return gen.New(0), nil })
		},
	})}
}

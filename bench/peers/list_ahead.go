package peers

import (
	"fmt"
	"time"

	"github.com/mustafaturan/monoflake"
	"github.com/yitter/idgenerator-go/idgen"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// mustafaturanMonoflake promises in its README that milliseconds are increased when
// the sequence is used up, and incremental IDs which changes of the clock do not
// affect.
func mustafaturanMonoflake() Peer {
	epoch := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC) // minEpoch
	return peer(Peer{
		Name: "mustafaturan/monoflake", Module: "github.com/mustafaturan/monoflake", Driven: ByBubble,
		How:     "time.Since in MonoFlake.Next, which does not wait",
		Claim:   "runs ahead of the clock without a limit (README, max sequencer case)",
		Instead: map[string]Variant{"F11": stepped, "F18": young},
		Ceiling: 8192_000,
		symbol:  monoflake.New, restarts: true,
		low: lowest, Integers: true,
	}, generatortest.Subject[int64]{
		Claim: runsAhead,
		Tick:  time.Millisecond,
		Time:  func(id int64) time.Time { return epoch.Add(time.Duration(monoflake.ID(id).Since()) * time.Millisecond) },
		Epoch: epoch,
		End:   epoch.Add(1 << 40 * time.Millisecond),
		New: func(*clocktest.Virtual) (generatortest.Process[int64], error) {
			gen, err := monoflake.New(7)
			return generatortest.Process[int64]{Next: func() (int64, error) { return gen.Next().Int64(), nil }}, err
		},
	})
}

// yitterIdgenerator promises at IdGeneratorOptions to run ahead of the clock by up to
// TopOverCostCount ticks, which is 2000, when a tick is used up. It does not speak of
// order. A tick has 64 numbers, of which the first 5 are reserved. Its 51 bits of
// milliseconds last beyond all clocks.
func yitterIdgenerator() Peer {
	ahead := generatortest.Bound{Borrow: 2000 * time.Millisecond}
	return peer(Peer{
		Name: "yitter/idgenerator-go", Module: "github.com/yitter/idgenerator-go", Driven: ByBubble,
		How:     "time.Now in SnowWorkerM1.GetCurrentTimeTick; time.Sleep in SnowWorkerM1.GetNextTimeTick, after 2000 borrowed ticks",
		Claim:   "runs up to 2000 ticks ahead when exhausted (IdGeneratorOptions.TopOverCostCount)",
		Instead: map[string]Variant{"F11": stepped, "F18": young},
		Ceiling: 59_000,
		symbol:  idgen.NewIdGeneratorOptions, restarts: true,
		low: lowest, Integers: true,
	}, generatortest.Subject[int64]{
		Claim: generatortest.Claim{Exhausted: ahead, Behind: ahead, Unordered: true},
		Tick:  time.Millisecond,
		Time: func(id int64) time.Time {
			return time.UnixMilli(id>>12 + idgen.NewIdGeneratorOptions(7).BaseTime)
		},
		Epoch: time.UnixMilli(idgen.NewIdGeneratorOptions(7).BaseTime).UTC(),
		New: func(*clocktest.Virtual) (p generatortest.Process[int64], err error) {
			defer func() { // it does so before its epoch
				if wrong := recover(); wrong != nil {
					err = fmt.Errorf("NewDefaultIdGenerator panics: %v", wrong)
				}
			}()
			gen := idgen.NewDefaultIdGenerator(idgen.NewIdGeneratorOptions(7))
			p.Next = func() (int64, error) { return gen.NewLong(), nil }
			return p, nil
		},
	})
}

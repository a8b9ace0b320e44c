package peers

import (
	"errors"
	"time"

	"github.com/sony/sonyflake"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// sonySonyflake promises in its README "2^8 IDs per 10 msec at most", which is a
// wait of at most 10 ms for one caller, and at NextID an error after the end of
// its 39 bits of time. Its IDs end in 16 bits of a machine and 8 of a sequence.
func sonySonyflake() Peer {
	const tick = 10 * time.Millisecond
	epoch := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC) // at Settings
	return peer(Peer{
		Name: "sony/sonyflake", Module: "github.com/sony/sonyflake", Driven: ByBubble,
		How:     "time.Now in currentElapsedTime, time.Sleep in Sonyflake.NextID",
		Claim:   "256 IDs per 10 ms (README); an error after the end of time (NextID)",
		Instead: map[string]Variant{"F11": stepped, "F18": young},
		Ceiling: 256 * 100,
		symbol:  sonyflake.New, restarts: true,
		low: lowest, Integers: true,
	}, generatortest.Subject[uint64]{
		Claim: generatortest.Claim{Exhausted: generatortest.Bound{Wait: tick}, Unordered: true},
		Tick:  tick,
		Time:  func(id uint64) time.Time { return epoch.Add(sonyflake.ElapsedTime(id)) },
		Epoch: epoch,
		End:   epoch.Add(1 << 39 * tick),
		CheckError: func(err error) error {
			if !errors.Is(err, sonyflake.ErrOverTimeLimit) {
				return errors.New("the error is not ErrOverTimeLimit")
			}
			return nil
		},
		New: func(*clocktest.Virtual) (generatortest.Process[uint64], error) {
			gen, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 7, nil }})
			if err != nil {
				return generatortest.Process[uint64]{}, err
			}
			return generatortest.Process[uint64]{Next: gen.NextID}, nil
		},
	})
}

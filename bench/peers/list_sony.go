package peers

import (
	"errors"
	"time"

	sonyv1 "github.com/sony/sonyflake"
	sonyv2 "github.com/sony/sonyflake/v2"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// sonyflakeV1 promises in its README "2^8 IDs per 10 msec at most", which is a
// wait of at most 10 ms for one caller, and at NextID an error after the end of
// its 39 bits of time.
func sonyflakeV1() Peer {
	epoch := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC) // at Settings
	return sony(Peer{
		Name: "sony/sonyflake", Module: "github.com/sony/sonyflake",
		How:    "time.Now in currentElapsedTime, time.Sleep in Sonyflake.NextID",
		Claim:  "256 IDs per 10 ms (README); an error after the end of time (NextID)",
		symbol: sonyv1.New,
	}, epoch, sonyv1.ErrOverTimeLimit, func() (func() (uint64, error), error) {
		gen, err := sonyv1.New(sonyv1.Settings{MachineID: func() (uint16, error) { return 7, nil }})
		return gen.NextID, err
	})
}

// sonyflakeV2 promises in its package documentation 8 bits of sequence per 10 ms, and
// at NextID what [sonyflakeV1] does.
func sonyflakeV2() Peer {
	epoch := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) // at Settings
	return sony(Peer{
		Name: "sony/sonyflake v2", Module: "github.com/sony/sonyflake/v2",
		How:    "time.Now in Sonyflake.currentElapsedTime, time.Sleep in Sonyflake.sleep",
		Claim:  "256 IDs per 10 ms (package documentation); an error after the end of time (NextID)",
		symbol: sonyv2.New,
	}, epoch, sonyv2.ErrOverTimeLimit, func() (func() (int64, error), error) {
		gen, err := sonyv2.New(sonyv2.Settings{MachineID: func() (int, error) { return 7, nil }})
		return gen.NextID, err
	})
}

// sony is either version, whose IDs end in 16 bits of a machine and 8 of a sequence.
func sony[ID int64 | uint64](p Peer, epoch time.Time, over error, open func() (func() (ID, error), error)) Peer {
	const tick = 10 * time.Millisecond
	p.Driven, p.restarts = ByBubble, true
	p.Instead = map[string]Variant{"F11": stepped, "F18": young}
	p.Ceiling = 256 * 100
	p.low, p.Integers = lowest, true
	return peer(p, generatortest.Subject[ID]{
		Claim: generatortest.Claim{Exhausted: generatortest.Bound{Wait: tick}, Unordered: true},
		Tick:  tick,
		Time:  func(id ID) time.Time { return epoch.Add(time.Duration(id>>24) * tick) },
		Epoch: epoch,
		End:   epoch.Add(1 << 39 * tick),
		CheckError: func(err error) error {
			if !errors.Is(err, over) {
				return errors.New("the error is not ErrOverTimeLimit")
			}
			return nil
		},
		New: func(*clocktest.Virtual) (generatortest.Process[ID], error) {
			next, err := open()
			if err != nil {
				return generatortest.Process[ID]{}, err
			}
			return generatortest.Process[ID]{Next: next}, nil
		},
	})
}

package peers

import (
	"errors"
	"time"

	"github.com/bwmarrin/snowflake"
	google "github.com/google/uuid"
	"github.com/sony/sonyflake"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// bwmarrinSnowflake promises in its README that "the generate function will pause
// until the next millisecond" when the sequence is used up. The README does not
// speak of order. Its 41 bits of milliseconds are those of the README.
func bwmarrinSnowflake() Peer {
	epoch := time.UnixMilli(snowflake.Epoch).UTC()
	return peer(Peer{
		Name: "bwmarrin/snowflake", Module: "github.com/bwmarrin/snowflake", Driven: ByBubble,
		How:     "time.Since in snowflake.Node.Generate",
		Claim:   "pauses until the next millisecond when exhausted (README)",
		Remark:  "Generate reads the time in a loop until the millisecond is over, and a bubble's time passes only when all wait: 4096 IDs at once are more than can be driven",
		Instead: map[string]Variant{"F11": stepped, "F12": burst, "F17": gentleEnd, "F18": young},
		symbol:  snowflake.NewNode,
	}, generatortest.Subject[int64]{
		Claim: generatortest.Claim{Exhausted: generatortest.Bound{Wait: time.Millisecond}, Unordered: true},
		Tick:  time.Millisecond,
		Time:  func(id int64) time.Time { return time.UnixMilli(snowflake.ID(id).Time()) },
		Epoch: epoch,
		End:   epoch.Add(1 << 41 * time.Millisecond),
		New: func(*clocktest.Virtual) (generatortest.Process[int64], error) {
			node, err := snowflake.NewNode(7)
			return generatortest.Process[int64]{Next: func() (int64, error) { return node.Generate().Int64(), nil }}, err
		},
	})
}

// sonyflakeV1 promises in its README "2^8 IDs per 10 msec at most", which is a
// wait of at most 10 ms for one caller, and at NextID an error after the end of
// its 39 bits of time.
func sonyflakeV1() Peer {
	const tick = 10 * time.Millisecond
	epoch := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC) // at Settings
	return peer(Peer{
		Name: "sony/sonyflake", Module: "github.com/sony/sonyflake", Driven: ByBubble,
		How:     "time.Now in currentElapsedTime, time.Sleep in Sonyflake.NextID",
		Claim:   "256 IDs per 10 ms (README); an error after the end of time (NextID)",
		Instead: map[string]Variant{"F11": stepped, "F18": young},
		symbol:  sonyflake.New, restarts: true,
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

// googleV7 promises, at getV7Time, that each time and sequence is greater than
// any before, and sets no limit to how far that is ahead of the clock.
func googleV7() Peer {
	return peer(Peer{
		Name: "google/uuid v7", Module: "github.com/google/uuid", Driven: ByBubble,
		How:     "time.Now in getV7Time; the last time is a package variable",
		Claim:   "runs ahead of the clock without a limit (getV7Time)",
		Instead: map[string]Variant{"F11": stepped, "F12": burst},
		symbol:  google.NewV7,
	}, subject{
		Claim: runsAhead, Tick: time.Millisecond, Time: uuidTime, Epoch: in1970,
		New: func(*clocktest.Virtual) (process, error) { return issues(google.NewV7) },
	})
}

// absent are peers that are not run. How they get their time was read in their
// source.
var absent = []Peer{
	{Name: "sony/sonyflake v2", Module: "github.com/sony/sonyflake/v2", Driven: ByNone,
		How: "time.Now in Sonyflake.currentElapsedTime, time.Sleep in Sonyflake.sleep"},
	{Name: "mustafaturan/monoflake", Module: "github.com/mustafaturan/monoflake", Driven: ByNone,
		How: "time.Since in MonoFlake.Next, which does not wait"},
	{Name: "yitter/idgenerator-go", Module: "github.com/yitter/idgenerator-go", Driven: ByNone,
		How: "time.Now in SnowWorkerM1.GetCurrentTimeTick; SnowWorkerM1.GetNextTimeTick spins after 2000 borrowed ticks"},
	{Name: "godruoyi/go-snowflake", Module: "github.com/godruoyi/go-snowflake", Driven: ByNone,
		How: "time.Now in currentMillis; waitForNextMillis spins; the state is in package variables (AtomicResolver)"},
	{Name: "muyo/sno", Module: "github.com/muyo/sno", Driven: ByNone,
		How: "time.Now in Snotime; Generator.New waits by a ticker when exhausted; Generator.NewWithTime takes a time, but leaves collisions to the caller"},
}

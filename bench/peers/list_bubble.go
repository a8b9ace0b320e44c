package peers

import (
	"time"

	"github.com/bwmarrin/snowflake"
	google "github.com/google/uuid"

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
		Ceiling: 4096_000,
		symbol:  snowflake.NewNode,
		low:     lowest, Integers: true,
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

// googleV7 promises, at getV7Time, that each time and sequence is greater than
// any before, and sets no limit to how far that is ahead of the clock.
func googleV7() Peer {
	return peer(Peer{
		Name: "google/uuid v7", Module: "github.com/google/uuid", Driven: ByBubble,
		How:     "time.Now in getV7Time; the last time is a package variable",
		Claim:   "runs ahead of the clock without a limit (getV7Time)",
		Instead: map[string]Variant{"F11": stepped, "F12": burst},
		symbol:  google.NewV7,
		low:     uuidLow,
	}, subject{
		Claim: runsAhead, Tick: time.Millisecond, Time: uuidTime, Epoch: in1970,
		New: func(*clocktest.Virtual) (process, error) { return issues(google.NewV7) },
	})
}

package peers

import (
	"time"

	"github.com/godruoyi/go-snowflake"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// godruoyiSnowflake promises in its README "a maximum of 2^12 -1 = 4095 IDs" in a
// millisecond, which is a wait of at most 1 ms for one caller, and 69 years. It does
// not speak of order. Its machine is number 0, as it is by default.
func godruoyiSnowflake() Peer {
	epoch := time.Date(2008, 11, 10, 23, 0, 0, 0, time.UTC) // startTime
	return peer(Peer{
		Name: "godruoyi/go-snowflake", Module: "github.com/godruoyi/go-snowflake", Driven: ByBubble,
		How:     "time.Now in currentMillis; the last time and sequence are package variables (AtomicResolver)",
		Claim:   "4095 IDs per millisecond, for 69 years (README)",
		Remark:  "waitForNextMillis reads the time in a loop until the millisecond is over, and a bubble's time passes only when all wait: 4096 IDs at once are more than can be driven",
		Instead: map[string]Variant{"F11": stepped, "F12": burst, "F17": gentleEnd, "F18": young},
		Ceiling: 4095_000,
		symbol:  snowflake.NextID,
		low:     lowest, Integers: true,
	}, generatortest.Subject[uint64]{
		Claim: generatortest.Claim{Exhausted: generatortest.Bound{Wait: time.Millisecond}, Unordered: true},
		Tick:  time.Millisecond,
		Time: func(id uint64) time.Time {
			parsed := snowflake.ParseID(id)
			return parsed.GenerateTime()
		},
		Epoch: epoch,
		End:   epoch.Add(1 << 41 * time.Millisecond),
		New: func(*clocktest.Virtual) (generatortest.Process[uint64], error) {
			return generatortest.Process[uint64]{Next: snowflake.NextID}, nil
		},
	})
}

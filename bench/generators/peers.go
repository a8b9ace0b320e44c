package peers

import (
	"errors"
	"fmt"
	"math/rand"
	"net"
	"strconv"
	"time"

	"github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// List returns the peers, in the order of the report, those that a reader added last.
func List() []Peer {
	return append([]Peer{
		bwmarrinSnowflake(), sonySonyflake(), googleV7(), gofrsV7(), gofrsV1(), oklogULID(), rsXID(), mongoObjectID(), segmentioKSUID(),
	}, added()...)
}

type (
	subject = generatortest.Subject[string]
	process = generatortest.Process[string]
)

var (
	unordered = generatortest.Claim{Unordered: true}
	runsAhead = generatortest.Claim{
		Exhausted: generatortest.Bound{Borrow: generatortest.Forever},
		Behind:    generatortest.Bound{Borrow: generatortest.Forever},
	}
	in1970 = time.Unix(0, 0).UTC()
)

// issues is a process whose IDs are texts.
func issues[T fmt.Stringer](next func() (T, error)) (process, error) {
	return process{Next: func() (string, error) {
		id, err := next()
		return id.String(), err
	}}, nil
}

// timeOf is the time of an ID that is a text.
func timeOf[T any](parse func(string) (T, error), of func(T) time.Time) func(string) time.Time {
	return func(id string) time.Time {
		parsed, err := parse(id)
		if err != nil {
			return time.Time{}
		}
		return of(parsed)
	}
}

// lowOf is the lowest byte of an ID that is a text.
func lowOf[T any](parse func(string) (T, error), of func(T) byte) func(string) (byte, error) {
	return func(id string) (byte, error) {
		parsed, err := parse(id)
		if err != nil {
			return 0, err
		}
		return of(parsed), nil
	}
}

// lowest is the lowest byte of an ID that is a number.
func lowest(id string) (byte, error) {
	number, err := strconv.ParseUint(id, 10, 64)
	return byte(number), err
}

var uuidLow = lowOf(google.Parse, func(u google.UUID) byte { return u[15] })

var uuidTime = timeOf(google.Parse, func(u google.UUID) time.Time { return time.Unix(u.Time().UnixTime()) })

// gofrsV7 promises, at NewV7, strictly increasing UUIDs of one generator, also
// when the clock goes back, by going ahead of the clock without a limit.
func gofrsV7() Peer {
	return peer(Peer{
		Name: "gofrs/uuid v7", Module: "github.com/gofrs/uuid/v5", Driven: ByClock,
		How:      "uuid.WithEpochFunc, for uuid.NewGenWithOptions",
		Claim:    "runs ahead of the clock without a limit, exhausted or behind (NewV7)",
		restarts: true, low: uuidLow,
	}, subject{
		Claim: runsAhead, Tick: time.Millisecond, Time: uuidTime, Epoch: in1970,
		New: func(clock *clocktest.Virtual) (process, error) {
			return issues(gofrs.NewGenWithOptions(gofrs.WithEpochFunc(clock.Now)).NewV7)
		},
	})
}

// gofrsV1 promises no order: a UUID of version 1 begins with the low bits of its
// time. Its time has a unit of 100 ns, which no call can use up on a clock that
// moves.
func gofrsV1() Peer {
	address := func() (net.HardwareAddr, error) { return net.HardwareAddr{2, 0, 0, 0, 0, 7}, nil }
	return peer(Peer{
		Name: "gofrs/uuid v1", Module: "github.com/gofrs/uuid/v5", Driven: ByClock,
		How:      "uuid.WithEpochFunc, for uuid.NewGenWithOptions",
		Claim:    "nothing on waiting, or on clocks (NewV1)",
		Remark:   "F12 has duplicates in some runs only: of two random starts among 2^14, with thousands of UUIDs each in one instant of 100 ns. On a clock that moves no caller is as fast",
		restarts: true, low: uuidLow,
	}, subject{
		Claim: unordered, Tick: 100 * time.Nanosecond, Time: uuidTime, Epoch: time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC),
		New: func(clock *clocktest.Virtual) (process, error) {
			return issues(gofrs.NewGenWithOptions(gofrs.WithEpochFunc(clock.Now), gofrs.WithHWAddrFunc(address)).NewV1)
		},
	})
}

// oklogULID is driven as ulid.Make works: New with the time and a locked source
// of monotonic entropy. Monotonic promises ascending entropy for calls of the same
// millisecond, and the README that milliseconds ascend.
func oklogULID() Peer {
	return peer(Peer{
		Name: "oklog/ulid", Module: "github.com/oklog/ulid/v2", Driven: ByCall,
		How:      "ulid.New(ms, entropy), with a LockedMonotonicReader as ulid.Make has one",
		Claim:    "an error if the entropy of a millisecond runs out (Monotonic)",
		Remark:   "promises order while the clock does not go back (README), to which it is not held here: see where its IDs were out of order",
		restarts: true,
		low:      lowOf(ulid.ParseStrict, func(u ulid.ULID) byte { return u[15] }),
	}, subject{
		Claim: unordered, Tick: time.Millisecond, Time: timeOf(ulid.ParseStrict, ulid.ULID.Timestamp), Epoch: in1970,
		New: func(clock *clocktest.Virtual) (process, error) {
			entropy := &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.New(rand.NewSource(rand.Int63())), 0)}
			return issues(func() (ulid.ULID, error) { return ulid.New(ulid.Timestamp(clock.Now()), entropy) })
		},
	})
}

// rsXID is driven as xid.New works, which is NewWithTime(time.Now()). Its package
// documentation says K-ordered, which is no order within its second.
func rsXID() Peer {
	return peer(Peer{
		Name: "rs/xid", Module: "github.com/rs/xid", Driven: ByCall,
		How:     "xid.NewWithTime, as xid.New calls it; machine, process and counter are package variables",
		Claim:   "unique for 16,777,216 IDs per second, host and process (package documentation)",
		Instead: map[string]Variant{"F11": stepped, "F12": burst},
		low:     lowOf(xid.FromString, func(x xid.ID) byte { return x[11] }),
	}, subject{
		Claim: unordered, Tick: time.Second, Time: timeOf(xid.FromString, xid.ID.Time),
		Epoch: in1970, End: in1970.Add(1 << 32 * time.Second),
		New: func(clock *clocktest.Virtual) (process, error) {
			return issues(func() (xid.ID, error) { return xid.NewWithTime(clock.Now()), nil })
		},
	})
}

// mongoObjectID is driven as bson.NewObjectID works, which is
// NewObjectIDFromTimestamp(time.Now()).
func mongoObjectID() Peer {
	return peer(Peer{
		Name: "MongoDB ObjectID", Module: "go.mongodb.org/mongo-driver/v2", Driven: ByCall,
		How:     "bson.NewObjectIDFromTimestamp, as bson.NewObjectID calls it; process and counter are package variables",
		Claim:   "nothing on waiting, or on clocks (NewObjectID)",
		Instead: map[string]Variant{"F11": stepped, "F12": burst},
		low:     lowOf(bson.ObjectIDFromHex, func(o bson.ObjectID) byte { return o[11] }),
	}, subject{
		Claim: unordered, Tick: time.Second, Time: timeOf(bson.ObjectIDFromHex, bson.ObjectID.Timestamp),
		Epoch: in1970, End: in1970.Add(1 << 32 * time.Second),
		New: func(clock *clocktest.Virtual) (process, error) {
			return process{Next: func() (string, error) { return bson.NewObjectIDFromTimestamp(clock.Now()).Hex(), nil }}, nil
		},
	})
}

// segmentioKSUID is driven as ksuid.NewRandom works, which is
// NewRandomWithTime(time.Now()). Its README says "loosely sorted by generation
// time. This is not a strong guarantee".
func segmentioKSUID() Peer {
	epoch := time.Unix(1_400_000_000, 0).UTC()
	return peer(Peer{
		Name: "segmentio/ksuid", Module: "github.com/segmentio/ksuid", Driven: ByCall,
		How:      "ksuid.NewRandomWithTime, as ksuid.NewRandom calls it; it keeps no state, so a restart changes nothing",
		Claim:    "lasts about 136 years (epochStamp)",
		restarts: true,
		low:      lowOf(ksuid.Parse, func(k ksuid.KSUID) byte { return k[19] }),
	}, subject{
		Claim: unordered, Tick: time.Second, Time: timeOf(ksuid.Parse, ksuid.KSUID.Time),
		Epoch: epoch, End: epoch.Add(1 << 32 * time.Second),
		New: func(clock *clocktest.Virtual) (process, error) {
			return issues(func() (ksuid.KSUID, error) { return ksuid.NewRandomWithTime(clock.Now()) })
		},
	})
}

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
		low:     uuidLow,
	}, subject{
		Claim: runsAhead, Tick: time.Millisecond, Time: uuidTime, Epoch: in1970,
		New: func(*clocktest.Virtual) (process, error) { return issues(google.NewV7) },
	})
}

// sonySonyflake promises in its README "2^8 IDs per 10 msec at most", which is a
// wait of at most 10 ms for one caller, and at NextID an error after the end of
// its 39 bits of time. Its IDs end in 16 bits of a machine and 8 of a sequence.
func sonySonyflake() Peer {
	const tick = 10 * time.Millisecond
	epoch := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC) // at Settings
	return peer(Peer{
		Name: "sony/sonyflake", Module: "github.com/sony/sonyflake", Driven: ByBubble,
		How:      "time.Now in currentElapsedTime, time.Sleep in Sonyflake.NextID",
		Claim:    "256 IDs per 10 ms (README); an error after the end of time (NextID)",
		Instead:  map[string]Variant{"F11": stepped, "F18": young},
		restarts: true,
		low:      lowest, Integers: true,
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

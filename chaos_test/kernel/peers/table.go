package peers

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand"
	"net"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// node is the number of each machine that needs one, fixed as a fleet gives it.
const node = 7

var in1970 = time.Unix(0, 0).UTC()

// table has the peers, each as its README says to use it, and in its best configuration where
// that is another. Each promises what its documentation states, and no more; none states how
// long a call may take while the clock is behind.
func table() []Peer {
	// Counters of 24 bits beside a time of 32 bits in seconds.
	counter := Peer{Tick: time.Second, PerTick: 1 << 24, Full: Repeats, Driven: PerCall, Shared: true, Epoch: in1970, End: in1970.Add(1 << 32 * time.Second)}
	xids, objects := counter, counter
	// The README promises 16,777,216 unique IDs per second, host and process. K-ordered is no
	// order within a second.
	xids.Name, xids.Module, xids.How, xids.Restarts = "rs/xid", "github.com/rs/xid", "xid.New()", true
	xids.Claim = "unique for 16,777,216 IDs per second, host and process (package documentation)"
	xids.Through = "xid.NewWithTime, as xid.New calls it; machine, process and counter are package variables"
	objects.Name, objects.Module, objects.How = "MongoDB ObjectID", "go.mongodb.org/mongo-driver/v2", "bson.NewObjectID()"
	objects.Claim = "nothing on waiting, or on clocks (NewObjectID)"
	objects.Through = "bson.NewObjectIDFromTimestamp, as bson.NewObjectID calls it; process and counter are package variables"

	// The README promises order for calls of one millisecond, and milliseconds that sort: not
	// while the clock goes back. It calls the identifiers universally unique.
	ulids := Peer{
		Name: "oklog/ulid", Module: "github.com/oklog/ulid/v2", How: "ulid.Make()", Restarts: true, Tick: time.Millisecond, Full: Fails, Epoch: in1970,
		Driven: PerCall, Through: "ulid.New(ms, entropy), with a LockedMonotonicReader as ulid.Make has one",
		Claim: "an error if the entropy of a millisecond runs out (Monotonic)",
	}
	secure := ulids
	secure.Name, secure.How = "oklog/ulid, crypto/rand", "ulid.New(ulid.Now(), ulid.Monotonic(rand.Reader, 0))"

	// The README promises no collision, and no order: it "is not a strong guarantee".
	ksuids := Peer{
		Name: "segmentio/ksuid", Module: "github.com/segmentio/ksuid", How: "ksuid.NewRandom()", Restarts: true, Tick: time.Second,
		Epoch: time.Unix(1_400_000_000, 0).UTC(), End: time.Unix(1_400_000_000+1<<32, 0).UTC(),
		Driven: PerCall, Through: "ksuid.NewRandomWithTime, as ksuid.NewRandom calls it; it keeps no state, so a restart changes nothing",
		Claim: "lasts about 136 years (epochStamp)",
	}
	seeded := ksuids
	seeded.Name, seeded.How = "segmentio/ksuid, Sequence", "ksuid.Sequence of a random seed"

	// Package gofrs/uuid and google/uuid follow RFC 4122, whose UUIDs are unique across time.
	gofrs7 := Peer{
		// Strictly increasing UUIDs of one generator, also when the clock goes back.
		Name: "gofrs/uuid v7", Module: "github.com/gofrs/uuid/v5", How: "uuid.NewV7()", Ordered: true, Restarts: true,
		Tick: time.Millisecond, Full: Ahead, Epoch: in1970, Driven: Supplied, Through: "uuid.WithEpochFunc, for uuid.NewGenWithOptions",
		Claim: "runs ahead of the clock without a limit, exhausted or behind (NewV7)",
	}
	// A UUID of version 1 begins with the low bits of its time, so there is no order. No call
	// uses up 100 ns on a clock that moves.
	gofrs1 := gofrs7
	gofrs1.Name, gofrs1.How, gofrs1.Ordered, gofrs1.Full = "gofrs/uuid v1", "uuid.NewV1() with a fixed address", false, Repeats
	gofrs1.Tick, gofrs1.Epoch, gofrs1.Claim = 100*time.Nanosecond, time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC), "nothing on waiting, or on clocks (NewV1)"

	return []Peer{
		bwmarrin(), sony(),
		// NewV7 promises at getV7Time that each time and sequence is greater than those before.
		texts(Peer{
			Name: "google/uuid v7", Module: "github.com/google/uuid", How: "uuid.NewV7()", Ordered: true, Restarts: true,
			Tick: time.Millisecond, Full: Ahead, Epoch: in1970, Driven: Package, Shared: true, Through: "time.Now in getV7Time; the last time is a package variable",
			Claim: "runs ahead of the clock without a limit (getV7Time)",
		}, googleTime, func(Clock) func() (google.UUID, error) { return google.NewV7 }),
		texts(Peer{Name: "google/uuid v4", Module: "github.com/google/uuid", How: "uuid.NewRandom()", Restarts: true, Driven: Package, Shared: true},
			func(google.UUID) time.Time { return time.Time{} }, func(Clock) func() (google.UUID, error) { return google.NewRandom }),
		texts(gofrs7, gofrsTime, func(clock Clock) func() (gofrs.UUID, error) {
			if clock == System {
				return gofrs.NewV7
			}
			return gofrs.NewGenWithOptions(gofrs.WithEpochFunc(clock.Now)).NewV7
		}),
		texts(gofrs1, gofrsTime, func(clock Clock) func() (gofrs.UUID, error) {
			address := func() (net.HardwareAddr, error) { return net.HardwareAddr{2, 0, 0, 0, 0, node}, nil }
			return gofrs.NewGenWithOptions(gofrs.WithEpochFunc(clock.Now), gofrs.WithHWAddrFunc(address)).NewV1
		}),
		texts(ulids, ulid.ULID.Timestamp, func(clock Clock) func() (ulid.ULID, error) {
			if clock == System {
				return func() (ulid.ULID, error) { return ulid.Make(), nil }
			}
			return monotonicULID(clock, ulid.Monotonic(mathrand.New(mathrand.NewSource(mathrand.Int63())), 0))
		}),
		// The README advises it for order and security.
		texts(secure, ulid.ULID.Timestamp, func(clock Clock) func() (ulid.ULID, error) {
			return monotonicULID(clock, ulid.Monotonic(rand.Reader, 0))
		}),
		texts(xids, xid.ID.Time, func(clock Clock) func() (xid.ID, error) {
			if clock == System {
				return func() (xid.ID, error) { return xid.New(), nil }
			}
			return func() (xid.ID, error) { return xid.NewWithTime(clock.Now()), nil }
		}),
		texts(ksuids, ksuid.KSUID.Time, randomKSUID),
		texts(seeded, ksuid.KSUID.Time, ksuidSequence),
		texts(objects, bson.ObjectID.Timestamp, func(clock Clock) func() (bson.ObjectID, error) {
			if clock == System {
				return func() (bson.ObjectID, error) { return bson.NewObjectID(), nil }
			}
			return func() (bson.ObjectID, error) { return bson.NewObjectIDFromTimestamp(clock.Now()), nil }
		}),
		{Name: "sony/sonyflake v2", Module: "github.com/sony/sonyflake/v2", Refused: true},
		{Name: "godruoyi/go-snowflake", Module: "github.com/godruoyi/go-snowflake", Refused: true},
		{Name: "mustafaturan/monoflake", Module: "github.com/mustafaturan/monoflake", Refused: true},
		{Name: "yitter/idgenerator-go", Module: "github.com/yitter/idgenerator-go", Refused: true},
		{Name: "muyo/sno", Module: "github.com/muyo/sno", Refused: true},
	}
}

// bwmarrin promises in its README unique IDs per number of a node, on the condition at
// Generate that the system keeps accurate time, and says that calculations on the monotonic
// clock protect it. It does not speak of order, or of restarts. It reads the wall clock once,
// and monotonic time from then on. Its 41 bits of milliseconds are those of the README.
func bwmarrin() Peer {
	epoch := time.UnixMilli(snowflake.Epoch).UTC()
	return Integers(Peer{
		Name: "bwmarrin/snowflake", Module: "github.com/bwmarrin/snowflake", How: fmt.Sprintf("snowflake.NewNode(%d)", node),
		Tick: time.Millisecond, PerTick: 4096, Epoch: epoch, End: epoch.Add(1 << 41 * time.Millisecond),
		Slot:   func(id int64) int64 { return id>>22<<12 | id&4095 },
		Driven: Package, Through: "time.Since in snowflake.Node.Generate",
		Claim: "pauses until the next millisecond when exhausted (README)",
	}, func(Clock) (func() (int64, error), error) {
		n, err := snowflake.NewNode(node)
		return func() (int64, error) { return n.Generate().Int64(), nil }, err
	})
}

// sony promises at NextID a unique ID, for machines of different numbers, and in its README
// 2^8 IDs per 10 ms. It does not speak of order, or of restarts. Without MachineID it takes the
// lower half of a private IPv4 address, and New fails where there is none, as in a virtual
// machine. CheckMachineID is asked once, in New, whether another machine has the number: none
// has. Its IDs end in 8 bits of a sequence and 16 of a machine.
func sony() Peer {
	const tick = 10 * time.Millisecond
	epoch := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC) // the default, at Settings
	return Integers(Peer{
		Name: "sony/sonyflake", Module: "github.com/sony/sonyflake", How: fmt.Sprintf("sonyflake.New with MachineID %d", node),
		Tick: tick, PerTick: 256, Epoch: epoch, End: epoch.Add(1 << 39 * tick), EndErr: sonyflake.ErrOverTimeLimit,
		Slot:   func(id int64) int64 { return id >> sonyflake.BitLenMachineID },
		Driven: Package, Through: "time.Now in currentElapsedTime, time.Sleep in Sonyflake.NextID",
		Claim: "256 IDs per 10 ms (README); an error after the end of time (NextID)",
	}, func(Clock) (func() (int64, error), error) {
		s, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return node, nil }})
		return func() (int64, error) {
			id, err := s.NextID()
			return int64(id), err
		}, err
	})
}

func googleTime(u google.UUID) time.Time { return time.Unix(u.Time().UnixTime()) }

func gofrsTime(u gofrs.UUID) time.Time { return googleTime(google.UUID(u)) }

// monotonicULID makes ULIDs with entropy that ascends within a millisecond.
func monotonicULID(clock Clock, entropy *ulid.MonotonicEntropy) func() (ulid.ULID, error) {
	locked := &ulid.LockedMonotonicReader{MonotonicReader: entropy}
	return func() (ulid.ULID, error) { return ulid.New(ulid.Timestamp(clock.Now()), locked) }
}

func randomKSUID(clock Clock) func() (ksuid.KSUID, error) {
	if clock == System {
		return ksuid.NewRandom
	}
	return func() (ksuid.KSUID, error) { return ksuid.NewRandomWithTime(clock.Now()) }
}

// ksuidSequence promises ordered IDs of one seed, of which there are 65,536. A new seed
// follows, whose order is that of the clock: so there is no promise for all. A sequence is
// for one goroutine.
func ksuidSequence(clock Clock) func() (ksuid.KSUID, error) {
	random := randomKSUID(clock)
	var lock sync.Mutex
	var sequence ksuid.Sequence
	return func() (ksuid.KSUID, error) {
		lock.Lock()
		defer lock.Unlock()
		if sequence.Seed != ksuid.Nil {
			if id, err := sequence.Next(); err == nil {
				return id, nil
			}
		}
		seed, err := random()
		if err != nil {
			return ksuid.Nil, err
		}
		sequence = ksuid.Sequence{Seed: seed}
		return sequence.Next()
	}
}

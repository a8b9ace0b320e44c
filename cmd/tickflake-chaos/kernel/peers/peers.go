// Package peers has other public ID generators, for the faults on a real kernel, those in
// virtual time, and the benchmark.
//
// You need these names: [List] returns [Peer] values, whose New makes a [Generator] on a
// [Clock].
package peers

import (
	"crypto/rand"
	"encoding"
	"fmt"
	mathrand "math/rand"
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
)

// Peer is a generator of another project, in one of its configurations.
type Peer struct {
	Name string // unique
	How  string // how it is made, as its README says or better: "snowflake.NewNode(7)"

	// Promises of its documentation. Ordered: the IDs of one process ascend, whatever the
	// clock does. Restarts: no ID comes twice across a restart.
	Ordered, Restarts bool
	Claim             string // what it says about waiting and clocks, and where
	// Full is what a call does when the IDs of a tick are used up.
	Full Full

	// PackageTime says that it reads package time, so that only a clock of the system moves it.
	PackageTime bool
	// Shared says that its state is in package variables: all generators of a process
	// have the same.
	Shared bool

	// Integer says that its IDs are integers of 64 bits. Those of others are texts that
	// sort as the IDs do.
	Integer bool
	Bits    int // of an ID, constant bits included
	// Tick is the unit of the time in its IDs, or 0: there is none. PerTick is how many
	// IDs a generator has in one, or 0: as many as anybody calls for.
	Tick    time.Duration
	PerTick int64
	Epoch   time.Time // when the time in its IDs begins
	End     time.Time // when it ends; zero: after 2262
	// Time is the start of an ID's tick, zero for a text that is no ID.
	Time func(id string) time.Time
	// Low is the lowest byte of an ID, by which programs choose a shard.
	Low func(id string) (byte, error)
	// Slot is the place of an ID in time, if it is an integer: the number of its tick
	// since Epoch, times PerTick, plus its number in the tick. It leaves out the node.
	Slot func(id int64) int64
	// New makes a generator as a new process does. Clock is [System], or another one, which one
	// of package time does not read.
	New func(Clock) (Generator, error)
}

// Generator is one that was made. Goroutines may call its functions at the same time.
type Generator struct {
	Next    func() (id string, err error)
	Integer func() (int64, error) // the same without a text; nil if the IDs are texts
	// Loop makes n IDs, without a text, by a function value.
	Loop func(n int) error
}

// Full is what a generator does when the IDs of a tick are used up.
type Full string

// What a generator does when the IDs of a tick are used up.
const (
	Waits   Full = "waits for the next tick"
	Ahead   Full = "runs ahead of the clock"
	Repeats Full = "repeats IDs"
	Fails   Full = "fails"
)

// Clock is the time that a generator goes by: that of the system, or one that a fault changes.
type Clock interface {
	Now() time.Time
	Sleep(time.Duration)
}

// System is the clock of the system, without the monotonic reading: a step reaches it.
var System Clock = system{}

type system struct{}

func (system) Now() time.Time        { return time.Now().Round(0) }
func (system) Sleep(d time.Duration) { time.Sleep(d) }

// integers completes a peer whose IDs are integers: from Tick, PerTick, Epoch and Slot, and
// from a function that makes a generator. Unless its fields say more, its state is that of the
// generator, and it waits for the next tick.
func integers(p Peer, open func(Clock) (next func() (int64, error), err error)) Peer {
	p.Integer, p.Bits = true, 64
	if p.Full == "" {
		p.Full = Waits
	}
	p.Time = func(id string) time.Time {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return time.Time{}
		}
		return p.Epoch.Add(time.Duration(p.Slot(n)/p.PerTick) * p.Tick)
	}
	p.Low = func(id string) (byte, error) {
		n, err := strconv.ParseInt(id, 10, 64)
		return byte(n), err
	}
	p.New = func(clock Clock) (Generator, error) {
		next, err := open(clock)
		return Generator{Loop: loop(next), Integer: next, Next: func() (string, error) {
			id, err := next()
			return strconv.FormatInt(id, 10), err
		}}, err
	}
	return p
}

// binary is the type of IDs that have a text.
type binary interface {
	~[12]byte | ~[16]byte | ~[20]byte
	encoding.TextMarshaler
}

// texts completes a peer whose IDs are texts. system makes one as a program does, on the clock of the
// system; on makes a generator on a clock. One of them may be nil: then the other serves every clock.
func texts[T binary](p Peer, at func(T) time.Time, system func() (T, error), on func(Clock) func() (T, error)) Peer {
	var none T
	p.Bits = 8 * len(none)
	parse := func(text string) (id T, err error) {
		err = any(&id).(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		return id, err
	}
	p.Time = func(text string) time.Time {
		id, err := parse(text)
		if err != nil {
			return time.Time{}
		}
		return at(id)
	}
	p.Low = func(text string) (byte, error) {
		id, err := parse(text)
		return id[len(id)-1], err
	}
	p.New = func(clock Clock) (Generator, error) {
		next := system
		if system == nil || clock != System && on != nil {
			next = on(clock)
		}
		return Generator{Loop: loop(next), Next: func() (string, error) {
			id, err := next()
			if err != nil {
				return "", err
			}
			text, err := id.MarshalText()
			return string(text), err
		}}, nil
	}
	return p
}

// sure is a generator that never fails.
func sure[T any](next func() T) func() (T, error) {
	return func() (T, error) { return next(), nil }
}

func loop[T any](next func() (T, error)) func(n int) error {
	return func(n int) error {
		for range n {
			if _, err := next(); err != nil {
				return fmt.Errorf("make an ID: %w", err)
			}
		}
		return nil
	}
}

// node is the number of each machine that needs one, fixed as a fleet gives it.
const node = 7

var in1970 = time.Unix(0, 0).UTC()

// List returns the peers in the order of the report, each as its README says to use it, and in its best configuration where
// that is another. Each promises what its documentation states, and no more; none states how
// long a call may take while the clock is behind.
func List() []Peer {
	// Counters of 24 bits beside a time of 32 bits in seconds.
	counter := Peer{Tick: time.Second, PerTick: 1 << 24, Full: Repeats, Shared: true, Epoch: in1970, End: in1970.Add(1 << 32 * time.Second)}
	xids, objects := counter, counter
	// The README promises 16,777,216 unique IDs per second, host and process. K-ordered is no
	// order within a second.
	xids.Name, xids.How, xids.Restarts = "rs/xid", "xid.New()", true
	xids.Claim = "unique for 16,777,216 IDs per second, host and process (package documentation)"
	objects.Name, objects.How = "MongoDB ObjectID", "bson.NewObjectID()"
	objects.Claim = "nothing on waiting, or on clocks (NewObjectID)"

	// The README promises order for calls of one millisecond, and milliseconds that sort: not
	// while the clock goes back. It calls the identifiers universally unique.
	ulids := Peer{
		Name: "oklog/ulid", How: "ulid.Make()", Restarts: true, Tick: time.Millisecond, Full: Fails, Epoch: in1970,
		Claim: "an error if the entropy of a millisecond runs out (Monotonic)",
	}
	secure := ulids
	secure.Name, secure.How = "oklog/ulid, crypto/rand", "ulid.New(ulid.Now(), ulid.Monotonic(rand.Reader, 0))"

	// The README promises no collision, and no order: it "is not a strong guarantee".
	ksuids := Peer{
		Name: "segmentio/ksuid", How: "ksuid.NewRandom()", Restarts: true, Tick: time.Second,
		Epoch: time.Unix(1_400_000_000, 0).UTC(), End: time.Unix(1_400_000_000+1<<32, 0).UTC(),
		Claim: "lasts about 136 years (epochStamp)",
	}

	// Package gofrs/uuid and google/uuid follow RFC 4122, whose UUIDs are unique across time.
	gofrs7 := Peer{
		// Strictly increasing UUIDs of one generator, also when the clock goes back.
		Name: "gofrs/uuid v7", How: "uuid.NewV7()", Ordered: true, Restarts: true,
		Tick: time.Millisecond, Full: Ahead, Epoch: in1970,
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
			Name: "google/uuid v7", How: "uuid.NewV7()", Ordered: true, Restarts: true,
			Tick: time.Millisecond, Full: Ahead, Epoch: in1970, PackageTime: true, Shared: true,
		}, googleTime, google.NewV7, nil),
		texts(Peer{Name: "google/uuid v4", How: "uuid.NewRandom()", Restarts: true, PackageTime: true, Shared: true},
			func(google.UUID) time.Time { return time.Time{} }, google.NewRandom, nil),
		texts(gofrs7, gofrsTime, gofrs.NewV7, func(clock Clock) func() (gofrs.UUID, error) {
			return gofrs.NewGenWithOptions(gofrs.WithEpochFunc(clock.Now)).NewV7
		}),
		texts(gofrs1, gofrsTime, nil, func(clock Clock) func() (gofrs.UUID, error) {
			address := func() (net.HardwareAddr, error) { return net.HardwareAddr{2, 0, 0, 0, 0, node}, nil }
			return gofrs.NewGenWithOptions(gofrs.WithEpochFunc(clock.Now), gofrs.WithHWAddrFunc(address)).NewV1
		}),
		texts(ulids, ulid.ULID.Timestamp, sure(ulid.Make), func(clock Clock) func() (ulid.ULID, error) {
			return monotonicULID(clock, ulid.Monotonic(mathrand.New(mathrand.NewSource(mathrand.Int63())), 0))
		}),
		// The README advises it for order and security.
		texts(secure, ulid.ULID.Timestamp, nil, func(clock Clock) func() (ulid.ULID, error) {
			return monotonicULID(clock, ulid.Monotonic(rand.Reader, 0))
		}),
		texts(xids, xid.ID.Time, sure(xid.New), func(clock Clock) func() (xid.ID, error) {
			return sure(func() xid.ID { return xid.NewWithTime(clock.Now()) })
		}),
		texts(ksuids, ksuid.KSUID.Time, ksuid.NewRandom, func(clock Clock) func() (ksuid.KSUID, error) {
			return func() (ksuid.KSUID, error) { return ksuid.NewRandomWithTime(clock.Now()) }
		}),
		texts(objects, bson.ObjectID.Timestamp, sure(bson.NewObjectID), func(clock Clock) func() (bson.ObjectID, error) {
			return sure(func() bson.ObjectID { return bson.NewObjectIDFromTimestamp(clock.Now()) })
		}),
	}
}

// bwmarrin promises in its README unique IDs per number of a node, on the condition at
// Generate that the system keeps accurate time, and says that calculations on the monotonic
// clock protect it. It does not speak of order, or of restarts. It reads the wall clock once,
// and monotonic time from then on.
func bwmarrin() Peer {
	epoch := time.UnixMilli(snowflake.Epoch).UTC()
	return integers(Peer{
		Name: "bwmarrin/snowflake", How: fmt.Sprintf("snowflake.NewNode(%d)", node),
		Tick: time.Millisecond, PerTick: 4096, Epoch: epoch,
		Slot:        func(id int64) int64 { return id>>22<<12 | id&4095 },
		PackageTime: true,
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
	return integers(Peer{
		Name: "sony/sonyflake", How: fmt.Sprintf("sonyflake.New with MachineID %d", node),
		Tick: tick, PerTick: 256, Epoch: epoch,
		Slot:        func(id int64) int64 { return id >> sonyflake.BitLenMachineID },
		PackageTime: true,
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

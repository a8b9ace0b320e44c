package subject

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	"github.com/sony/sonyflake"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/tickflake/tickflake/monoclock"
)

const peer = "peer"

// peers returns other generators, each as its README says to use it, and in its best
// configuration where that is another. A machine's number is fixed, as a fleet gives it.
// Each promises what its documentation states, and no more; none states how long a call
// may take while the clock is behind.
func peers() []Subject {
	return []Subject{
		bwmarrinSnowflake(), sonySonyflake(),
		// NewV7 promises at getV7Time that each time and sequence is greater than those
		// before. Package uuid follows RFC 4122, whose UUIDs are unique across time.
		textPeer(Subject{Name: "google/uuid v7", How: "uuid.NewV7()", Ordered: true, Restarts: true},
			uuid.NewV7, func(u uuid.UUID) time.Time { return time.Unix(u.Time().UnixTime()) }),
		// The README promises order for calls of one millisecond, and milliseconds that
		// sort: not while the clock goes back. It calls the identifiers universally unique.
		textPeer(Subject{Name: "oklog/ulid, Make", How: "ulid.Make()", Restarts: true},
			never(ulid.Make), ulid.ULID.Timestamp),
		monotonicULID(),
		// The README promises 16,777,216 unique IDs per second, host and process.
		// K-ordered is no order within a second.
		textPeer(Subject{Name: "rs/xid", How: "xid.New()", Restarts: true},
			never(xid.New), xid.ID.Time),
		// The README promises no collision, and no order: it "is not a strong guarantee".
		textPeer(Subject{Name: "segmentio/ksuid, New", How: "ksuid.NewRandom()", Restarts: true},
			ksuid.NewRandom, ksuid.KSUID.Time),
		ksuidSequence(),
		// Nothing is promised at NewObjectID.
		textPeer(Subject{Name: "MongoDB ObjectID", How: "bson.NewObjectID()"},
			never(func() objectID { return objectID{bson.NewObjectID()} }), func(id objectID) time.Time { return id.Timestamp() }),
		refused("sony/sonyflake v2", "github.com/sony/sonyflake/v2"),
		refused("godruoyi/go-snowflake", "github.com/godruoyi/go-snowflake"),
		refused("mustafaturan/monoflake", "github.com/mustafaturan/monoflake"),
		refused("yitter/idgenerator-go", "github.com/yitter/idgenerator-go"),
		refused("muyo/sno", "github.com/muyo/sno"),
	}
}

// refused is a peer whose module cannot be had where this program is built.
func refused(name, module string) Subject {
	return Subject{Name: name, Group: peer, Bound: -1, Skipped: "the Go module proxy of the build refuses " + module}
}

// never is a generator that never fails.
func never[T any](next func() T) func() (T, error) {
	return func() (T, error) { return next(), nil }
}

// objectID prints the 24 digits alone.
type objectID struct{ bson.ObjectID }

func (o objectID) String() string { return o.Hex() }

// textPeer is a peer on the wall clock, whose IDs are texts that sort like the IDs.
func textPeer[T fmt.Stringer](s Subject, next func() (T, error), at func(T) time.Time) Subject {
	s.Group, s.Bound, s.Clock = peer, -1, raw
	s.Open = func(context.Context, Place) (Source, error) {
		return Source{Next: func(context.Context) (string, time.Duration, error) {
			id, err := next()
			if err != nil {
				return "", 0, err
			}
			return id.String(), aheadOf(at(id), time.Now()), nil
		}}, nil
	}
	return s
}

// aheadOf returns how far an ID's time is ahead of a clock, or 0.
func aheadOf(id, now time.Time) time.Duration { return max(id.Sub(now.Round(0)), 0) }

// bwmarrinSnowflake promises in its README unique IDs per number of a node, on the
// condition at Generate that the system keeps accurate time, and says that calculations
// on the monotonic clock protect it. It does not speak of order, or of restarts. It reads
// the wall clock once, and monotonic time from then on.
func bwmarrinSnowflake() Subject {
	return Subject{
		Name: "bwmarrin/snowflake", Group: peer, How: fmt.Sprintf("snowflake.NewNode(%d)", fixedNode),
		Numbers: true, Bound: -1, Clock: monotonic,
		Open: func(context.Context, Place) (Source, error) {
			clock := monoclock.New()
			node, err := snowflake.NewNode(fixedNode)
			return Source{Next: func(context.Context) (string, time.Duration, error) {
				id := node.Generate()
				return strconv.FormatInt(id.Int64(), 10), aheadOf(time.UnixMilli(id.Time()), clock.Now()), nil
			}}, err
		},
	}
}

// sonySonyflake promises at NextID a unique ID, for machines of different numbers. It does
// not speak of order, or of restarts. Without MachineID it takes the lower half of a
// private IPv4 address, and New fails where there is none, as in the machine.
// CheckMachineID is asked once, in New, whether another machine has the number: none has.
func sonySonyflake() Subject {
	start := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC) // the default, at Settings
	return Subject{
		Name: "sony/sonyflake", Group: peer, How: fmt.Sprintf("sonyflake.New with MachineID %d", fixedNode),
		Numbers: true, Bound: -1, Clock: raw,
		Open: func(context.Context, Place) (Source, error) {
			gen, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return fixedNode, nil }})
			if err != nil {
				return Source{}, err
			}
			return Source{Next: func(context.Context) (string, time.Duration, error) {
				id, err := gen.NextID()
				return strconv.FormatUint(id, 10), aheadOf(start.Add(sonyflake.ElapsedTime(id)), time.Now()), err
			}}, nil
		},
	}
}

// monotonicULID is the use that the README advises for order and security: entropy that
// ascends within a millisecond, from crypto/rand.
func monotonicULID() Subject {
	entropy := &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)}
	return textPeer(Subject{Name: "oklog/ulid, crypto/rand", How: "ulid.New(ulid.Now(), ulid.Monotonic(rand.Reader, 0))", Restarts: true},
		func() (ulid.ULID, error) { return ulid.New(ulid.Now(), entropy) }, ulid.ULID.Timestamp)
}

// ksuidSequence promises ordered IDs of one seed, of which there are 65,536. A new seed
// follows, whose order is that of the clock: so there is no promise for all.
func ksuidSequence() Subject {
	var sequence ksuid.Sequence
	next := func() (ksuid.KSUID, error) {
		if sequence.Seed != ksuid.Nil {
			if id, err := sequence.Next(); err == nil {
				return id, nil
			}
		}
		seed, err := ksuid.NewRandom()
		if err != nil {
			return ksuid.Nil, err
		}
		sequence = ksuid.Sequence{Seed: seed}
		return sequence.Next()
	}
	return textPeer(Subject{Name: "segmentio/ksuid, Sequence", How: "ksuid.Sequence of a random seed", Restarts: true}, next, ksuid.KSUID.Time)
}

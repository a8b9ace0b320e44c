package cases

import (
	"context"
	"errors"
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

	"github.com/tickflake/tickflake/bench/results"
)

// Peers are the other generators.
func Peers() []Case {
	return []Case{
		Bwmarrin(), BwmarrinWide(), Sonyflake(),
		XID(), ObjectID(), ulidMake(), ksuidNewRandom(), googleV4(), GoogleV7(), gofrsV7(),
	}
}

// peer is a case of a generator whose loops share all their state. Each loop below calls
// its generator directly, and not through a function value, as its users do.
func peer(name string, bits int, limit Limit, loop Loop) Case {
	return Case{Name: name, Group: results.Peers, Bits: bits, Limit: limit, Open: func(context.Context) (Source, error) {
		return Source{Loop: func() Loop { return loop }}, nil
	}}
}

// Bwmarrin calls Generate of bwmarrin/snowflake, as it is imported.
func Bwmarrin() Case {
	return bwmarrin("bwmarrin/snowflake", 10, 12)
}

// BwmarrinWide is [Bwmarrin] with all 22 bits that NodeBits and StepBits share in the
// sequence.
func BwmarrinWide() Case {
	c := bwmarrin("bwmarrin/snowflake, 22-bit sequence", 0, 22)
	c.Note = "snowflake.NodeBits = 0 and StepBits = 22, so there is one node only"
	return c
}

func bwmarrin(name string, nodeBits, stepBits uint8) Case {
	limit := Limit{IDs: 1 << stepBits, Per: time.Millisecond}
	return Case{Name: name, Group: results.Peers, Bits: 64, Limit: limit, Open: func(context.Context) (Source, error) {
		node, err := newNode(nodeBits, stepBits)
		return Source{Loop: func() Loop {
			return func(n int) error {
				for range n {
					node.Generate()
				}
				return nil
			}
		}}, err
	}}
}

// bits guards snowflake.NodeBits and StepBits, which NewNode reads.
var bits sync.Mutex

// newNode makes a node, and restores the package's variables, also those that NewNode
// computes from them.
func newNode(nodeBits, stepBits uint8) (*snowflake.Node, error) {
	bits.Lock()
	defer bits.Unlock()
	node, step := snowflake.NodeBits, snowflake.StepBits
	snowflake.NodeBits, snowflake.StepBits = nodeBits, stepBits
	made, err := snowflake.NewNode(0)
	snowflake.NodeBits, snowflake.StepBits = node, step
	_, restored := snowflake.NewNode(0)
	return made, errors.Join(err, restored)
}

// Sonyflake calls NextID of sony/sonyflake. The machine number is given, because the
// default takes it from a private address, which not every machine has.
func Sonyflake() Case {
	limit := Limit{IDs: 1 << sonyflake.BitLenSequence, Per: 10 * time.Millisecond}
	return Case{Name: "sony/sonyflake", Group: results.Peers, Bits: 64, Limit: limit, Open: func(context.Context) (Source, error) {
		s, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
		return Source{Loop: func() Loop {
			return func(n int) error {
				for range n {
					if _, err := s.NextID(); err != nil {
						return err
					}
				}
				return nil
			}
		}}, err
	}}
}

// counter24 is a counter of 24 bits beside a time in seconds.
var counter24 = Limit{IDs: 1 << 24, Per: time.Second, Repeats: true}

// XID calls xid.New.
func XID() Case {
	return peer("rs/xid", 96, counter24, func(n int) error {
		for range n {
			xid.New()
		}
		return nil
	})
}

// ObjectID calls bson.NewObjectID of MongoDB's driver.
func ObjectID() Case {
	return peer("MongoDB ObjectID", 96, counter24, func(n int) error {
		for range n {
			bson.NewObjectID()
		}
		return nil
	})
}

func ulidMake() Case {
	return peer("oklog/ulid", 128, Limit{}, func(n int) error {
		for range n {
			ulid.Make()
		}
		return nil
	})
}

func ksuidNewRandom() Case {
	return peer("segmentio/ksuid", 160, Limit{}, func(n int) error {
		for range n {
			if _, err := ksuid.NewRandom(); err != nil {
				return err
			}
		}
		return nil
	})
}

// googleV4 has no pool of randomness, as is the default of google/uuid.
func googleV4() Case {
	return peer("google/uuid v4", 128, Limit{}, func(n int) error {
		for range n {
			if _, err := google.NewRandom(); err != nil {
				return err
			}
		}
		return nil
	})
}

// GoogleV7 calls uuid.NewV7 of google/uuid, without a pool of randomness.
func GoogleV7() Case {
	return peer("google/uuid v7", 128, Limit{}, func(n int) error {
		for range n {
			if _, err := google.NewV7(); err != nil {
				return err
			}
		}
		return nil
	})
}

func gofrsV7() Case {
	return peer("gofrs/uuid v7", 128, Limit{}, func(n int) error {
		for range n {
			if _, err := gofrs.NewV7(); err != nil {
				return err
			}
		}
		return nil
	})
}

package cases

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"

	"github.com/tickflake/tickflake/bench/results"
)

// Peers are the other generators, in settings in which a loop measures what an ID costs,
// or else the ceiling of their format.
func Peers() []Case {
	return []Case{
		Bwmarrin(), BwmarrinWide(), Sonyflake(),
		XID(), ObjectID(), ULID(), KSUID(), GoogleV4(), GoogleV7(), GofrsV7(),
	}
}

// Bwmarrin calls Generate of bwmarrin/snowflake, as it is imported.
func Bwmarrin() Case {
	c := bwmarrin("bwmarrin/snowflake", 10, 12)
	c.Limit = Limit{IDs: 1 << 12, Per: time.Millisecond}
	return c
}

// BwmarrinWide is [Bwmarrin] with the 22 bits that its NodeBits and StepBits share all
// in the sequence.
func BwmarrinWide() Case {
	c := bwmarrin("bwmarrin/snowflake, 22-bit sequence", 0, 22)
	c.Limit = Limit{IDs: 1 << 22, Per: time.Millisecond}
	c.Note, c.Widened = "snowflake.NodeBits = 0 and StepBits = 22, so there is one node only", true
	return c
}

// bits guards snowflake.NodeBits and StepBits, which NewNode reads.
var bits sync.Mutex

func bwmarrin(name string, nodeBits, stepBits uint8) Case {
	return Case{Name: name, Group: results.Peers, Bits: 64, Open: func(context.Context) (Source, error) {
		node, err := newNode(nodeBits, stepBits)
		if err != nil {
			return Source{}, err
		}
		return Source{
			Loop: func() Loop {
				return func(n int) error {
					for range n {
						node.Generate()
					}
					return nil
				}
			},
			Issue: func() (ID, error) { return idOfInt(uint64(node.Generate().Int64())), nil },
		}, nil
	}}
}

// newNode makes a node, and leaves the package's variables as they were, those too that
// NewNode computes of them.
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

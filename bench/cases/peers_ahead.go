package cases

import (
	"context"
	"fmt"
	"time"

	"github.com/mustafaturan/monoflake"
	"github.com/yitter/idgenerator-go/idgen"

	"github.com/tickflake/tickflake/bench/results"
)

// Monoflake calls Next of mustafaturan/monoflake, as it is by default.
func Monoflake() Case {
	c := mono("mustafaturan/monoflake")
	c.Limit = Limit{IDs: 1 << 13, Per: time.Millisecond, Ahead: true}
	return c
}

// MonoflakeWide is [Monoflake] with the widest sequence that its options allow.
func MonoflakeWide() Case {
	c := mono("mustafaturan/monoflake, 15-bit sequence", monoflake.WithNodeBits(8))
	c.Limit = Limit{IDs: 1 << 15, Per: time.Millisecond, Ahead: true}
	c.Note, c.Widened = "WithNodeBits(8)", true
	return c
}

func mono(name string, opts ...monoflake.Option) Case {
	return Case{Name: name, Group: results.Peers, Bits: 64, Open: func(context.Context) (Source, error) {
		m, err := monoflake.New(1, opts...)
		if err != nil {
			return Source{}, err
		}
		return Source{
			Loop: func() Loop {
				return func(n int) error {
					for range n {
						m.Next()
					}
					return nil
				}
			},
			Issue: func() (ID, error) { return idOfInt(uint64(m.Next())), nil },
		}, nil
	}}
}

// Yitter calls NewLong of yitter/idgenerator-go, as it is by default. It runs ahead of
// the clock by up to 2000 ticks, of 59 IDs each, and then sleeps until the clock has
// caught up: in a loop it issues 118,000 IDs at once every two seconds, of which no
// batch of some milliseconds would show more than one half or the other.
func Yitter() Case { return yitter("yitter/idgenerator-go", 6, 6) }

// Yitter12 is [Yitter] with a sequence of 12 bits. In those 2000 ticks it issues 8 million
// IDs then, which is more than is measured at once.
func Yitter12() Case { return widened(yitter("yitter/idgenerator-go, 12-bit sequence", 10, 12), 12) }

// YitterWide is [Yitter] with the widest sequence that its options allow.
func YitterWide() Case { return widened(yitter("yitter/idgenerator-go, 21-bit sequence", 1, 21), 21) }

func widened(c Case, sequenceBits int) Case {
	c.Note, c.Widened = fmt.Sprintf("SeqBitLength is %d", sequenceBits), true
	return c
}

// yitter leaves out the first 5 numbers of its sequence, which are reserved.
func yitter(name string, workerBits, sequenceBits byte) Case {
	limit := Limit{IDs: 1<<sequenceBits - 5, Per: time.Millisecond, Ahead: true}
	return Case{Name: name, Group: results.Peers, Bits: 64, Limit: limit, Open: func(context.Context) (Source, error) {
		options := idgen.NewIdGeneratorOptions(1)
		options.WorkerIdBitLength, options.SeqBitLength = workerBits, sequenceBits
		g := idgen.NewDefaultIdGenerator(options)
		return Source{
			Loop: func() Loop {
				return func(n int) error {
					for range n {
						g.NewLong()
					}
					return nil
				}
			},
			Issue: func() (ID, error) { return idOfInt(uint64(g.NewLong())), nil },
		}, nil
	}}
}

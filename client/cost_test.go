package client

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// BenchmarkNext compares Next with that of the library in one run. The layout has so many IDs
// per tick that the strategy never waits. The client takes its IDs from a server in this
// process; network/op is the share of calls that waited for it.
func BenchmarkNext(b *testing.B) {
	wide := layout()
	wide.NodeBits, wide.SequenceBits = 2, 20
	g, err := generator.New(generator.WithNode(1), generator.WithLayout(wide))
	require.NoError(b, err)
	n := &network{}
	s := n.start(b, 1)
	s.layout, s.maxBatch = wide, 1<<20
	for _, goroutines := range []int{1, 2, 64} {
		b.Run(fmt.Sprintf("library/%d", goroutines), func(b *testing.B) {
			inParallel(b, goroutines, func() (snowflake.ID, error) { return g.Next() })
		})
		b.Run(fmt.Sprintf("client/%d", goroutines), func(b *testing.B) {
			c := open(b, []*fake{s})
			ctx := b.Context()
			for range 100_000 {
				_, err := c.Next(ctx)
				require.NoError(b, err)
			}
			before := c.Stats().Waits
			inParallel(b, goroutines, func() (snowflake.ID, error) { return c.Next(ctx) })
			b.ReportMetric(float64(c.Stats().Waits-before)/float64(b.N), "network/op")
		})
	}
}

// inParallel calls next b.N times from a number of goroutines.
func inParallel(b *testing.B, goroutines int, next func() (snowflake.ID, error)) {
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for i := range goroutines {
		group.Go(func() {
			for range (b.N + i) / goroutines {
				if _, err := next(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

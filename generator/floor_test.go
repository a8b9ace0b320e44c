package generator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// Every ID is above the floor as an integer, whatever the order of the fields, the node of the floor,
// and how the node number is had; also after a change of the node, and of the grant.
func TestFloor(t *testing.T) {
	const limit = 10 * time.Second
	for _, layout := range []snowflake.Layout{snowflake.Default(), snowflake.Sonyflake()} {
		for _, leased := range []bool{false, true} {
			for _, ahead := range []time.Duration{-time.Hour, -layout.Tick, 0, time.Second, limit - layout.Tick} {
				t.Run(fmt.Sprintf("%s, leased %t, %s ahead", layout.Name, leased, ahead), func(t *testing.T) {
					clock := newHandClock()
					floor, err := layout.Max(clock.Now().Add(ahead)) // of the last node, and the last of its tick
					require.NoError(t, err)
					options := []generator.Option{generator.WithFloor(floor), generator.WithStrategy(strategies.BorrowUpTo(time.Minute))}
					var keeper *lease.Keeper
					var poller seam.Poller
					if leased {
						keeper, err = lease.Claim(poller.In(t.Context()), storetest.NewMemory(), lease.WithLayout(layout), lease.WithClock(clock))
						require.NoError(t, err)
						options = append(options, generator.WithLease(keeper))
					} else {
						options = append(options, generator.WithLayout(layout), generator.WithClock(clock), generator.WithNode(0))
					}
					g, err := generator.New(options...)
					require.NoError(t, err)
					defer func() { assert.NoError(t, g.Close()) }()
					last := floor
					above := func() {
						id := mustNext(t, g)
						assert.Greater(t, id, last)
						last = id
					}
					above()
					assert.Nil(t, g.Store(), "Open opened none")
					assert.Equal(t, max(time.Duration(0), ahead+layout.Tick), g.Stats().MaxLead, "no later than it must be")
					if leased {
						node := g.Node()
						require.NoError(t, g.Restored(t.Context()))
						assert.NotEqual(t, node, g.Node())
						above()
						_, err := poller.Poll(t.Context())
						require.NoError(t, err)
						clock.step(-20 * time.Second)
						above()
					}
				})
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

package migrate_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
	"github.com/tickflake/tickflake/examples/migrate"
	"github.com/tickflake/tickflake/lease"
	flake "github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/storetest"
)

func Example_bwmarrin() {
	old, err := bwmarrin.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	last := snowflake.ID(old.Generate())
	ctx := context.Background()

	layout := snowflake.Layout()
	clock, err := migrate.StartAfter(ctx, layout, flake.ID(last))
	if err != nil {
		log.Fatal(err)
	}
	store, err := stores.Open(ctx, "bwmarrin-ids") // or "etcd://…", "postgres://…"
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	keeper, err := lease.Claim(ctx, store, lease.WithLayout(layout), lease.WithClock(clock))
	if err != nil {
		log.Fatal(err)
	}
	node, err := snowflake.NewLeasedNode(keeper)
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close() // releases the node number

	id := node.Generate()
	fmt.Println(id > last)
	// Output: true
}

func Example_bwmarrinTypes() {
	id := snowflake.ID(1541815603606036480)

	own := flake.ID(id)       // for tickflake's own functions
	back := snowflake.ID(own) // and back
	fmt.Println(id.Base58(), own.Base58(), back == id)

	read, err := snowflake.ParseBase58([]byte(own.Base58())) // the wrong parser
	fmt.Println(read == id, err)
	// Output:
	// 4zzv4rZaYpj 4aaW4SzAyQK true
	// false <nil>
}

func Example_bwmarrinEpoch() {
	defer func(epoch int64) { snowflake.Epoch = epoch }(snowflake.Epoch)
	last := snowflake.ID(2_300_000_000_000_000_000) // of the year 2028

	moved, err := migrate.EpochAbove(snowflake.Layout(), flake.ID(last), time.Now())
	if err != nil {
		log.Fatal(err)
	}
	snowflake.Epoch = moved.Epoch.UnixMilli()

	node, err := snowflake.NewNode(1)
	if err != nil {
		log.Fatal(err)
	}
	id := node.Generate()
	fmt.Println(id > last, time.Since(time.UnixMilli(id.Time())) < time.Minute)
	// Output: true true
}

// bubble runs f at midnight of 2000-01-01 by every clock, which is where each bubble
// begins: the second one sees the time of the first again, as a process does that starts
// after its clock was stepped back.
func bubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// inThe90s sets layouts whose epoch is before that.
func inThe90s(t *testing.T) {
	epoch, nodeBits, stepBits := bwmarrin.Epoch, bwmarrin.NodeBits, bwmarrin.StepBits
	t.Cleanup(func() { setLayouts(epoch, nodeBits, stepBits) })
	setLayouts(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), 10, 12)
}

// The clock of the old host was ahead, and that of the new one is right.
func TestOldClockWasAhead(t *testing.T) {
	inThe90s(t)
	for _, ahead := range []time.Duration{0, time.Millisecond, 10 * time.Second, 3 * time.Hour} {
		var last snowflake.ID
		bubble(t, func(t *testing.T) {
			time.Sleep(ahead)
			old, err := bwmarrin.NewNode(1)
			require.NoError(t, err)
			for range 4096 {
				last = snowflake.ID(old.Generate())
			}
		})
		bubble(t, func(t *testing.T) {
			layout := snowflake.Layout()
			began := time.Now()
			_, err := migrate.StartAfter(t.Context(), layout, flake.ID(last))
			if ahead > 10*time.Second-time.Millisecond {
				require.ErrorContains(t, err, "ahead of the clock (limit 10s)")
				layout, err = migrate.EpochAbove(layout, flake.ID(last), time.Now())
				require.NoError(t, err)
				assert.Greater(t, layout.Epoch, snowflake.Layout().Epoch.Add(-ahead-2*time.Minute))
				_, err = migrate.StartAfter(t.Context(), layout, flake.ID(last))
				require.NoError(t, err)
				assert.Zero(t, time.Since(began))
			} else {
				require.NoError(t, err)
				assert.Equal(t, ahead+time.Millisecond, time.Since(began))
			}
			id, err := openAfter(t, layout, flake.ID(last)).Next()
			require.NoError(t, err)
			assert.Greater(t, id, flake.ID(last), "%s", ahead)
		})
	}
}

// Old processes with the numbers 0 to 3, and new ones beside them.
func TestSideBySide(t *testing.T) {
	store, layout := storetest.NewMemory(), snowflake.Layout()
	until := time.Now().AddDate(0, 1, 0)
	require.NoError(t, lease.Reserve(t.Context(), store.Client(), 0, 3, until, lease.WithLayout(layout)))
	const processes, each = 4, 3000
	ids := make([][]int64, 2*processes)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			old, err := bwmarrin.NewNode(int64(i))
			if !assert.NoError(t, err) {
				return
			}
			for range each {
				ids[i] = append(ids[i], old.Generate().Int64())
			}
		})
		group.Go(func() {
			keeper, err := lease.Claim(t.Context(), store.Client(), lease.WithLayout(layout))
			if !assert.NoError(t, err) {
				return
			}
			node, err := snowflake.NewLeasedNode(keeper)
			if !assert.NoError(t, err) {
				return
			}
			for range each {
				ids[processes+i] = append(ids[processes+i], node.Generate().Int64())
			}
			assert.NoError(t, node.Close())
		})
	}
	group.Wait()
	all := slices.Concat(ids...)
	require.Len(t, all, 2*processes*each)
	slices.Sort(all)
	assert.Len(t, slices.Compact(all), 2*processes*each)

	// Back again: the old package takes the new IDs apart, and issues larger ones.
	newest := all[len(all)-1]
	_, err := migrate.StartAfter(t.Context(), layout, flake.ID(newest))
	require.NoError(t, err)
	again, err := bwmarrin.NewNode(0)
	require.NoError(t, err)
	assert.Greater(t, again.Generate().Int64(), newest)
	for _, id := range ids[processes] {
		read := bwmarrin.ID(id)
		parts, err := layout.Decode(flake.ID(id))
		require.NoError(t, err)
		require.Equal(t, []int64{parts.Time.UnixMilli(), parts.Node, parts.Sequence}, []int64{read.Time(), read.Node(), read.Step()})
	}
}

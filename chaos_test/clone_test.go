package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// double makes a keeper a copy of another, as far as it can be seen from outside: the
// other of the two node numbers looks held until it has claimed, and its claim is
// answered with the result of the original's and writes nothing. From then on both use
// the same store, and with the same token: double puts the original's for the copy's.
type double struct {
	*storetest.Memory
	after       stores.Cell // the original's claim
	token, mine string      // the original's and the copy's; mine is empty before the claim
}

var holder = regexp.MustCompile(`"holder":"([^"]*)"`)

func tokenOf(value []byte) string { return string(holder.FindSubmatch(value)[1]) }

func (d *double) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	if d.mine != "" {
		cells, err := d.Memory.List(ctx, from, to, limit)
		for i := range cells {
			cells[i].Value = bytes.ReplaceAll(cells[i].Value, []byte(d.token), []byte(d.mine))
		}
		return cells, err
	}
	other := stores.Cell{Key: nodeKey(1 - nodeOf(d.after.Key)), Version: 1, Value: d.after.Value}
	return []stores.Cell{other}, nil
}

func (d *double) Read(ctx context.Context, key string) (stores.Cell, error) {
	cell, err := d.Memory.Read(ctx, key)
	if d.mine != "" {
		cell.Value = bytes.ReplaceAll(cell.Value, []byte(d.token), []byte(d.mine))
	}
	return cell, err
}

func (d *double) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if d.mine == "" {
		d.token, d.mine = tokenOf(d.after.Value), tokenOf(value)
		return d.after.Version, nil
	}
	return d.Memory.Swap(ctx, key, version, bytes.ReplaceAll(value, []byte(d.mine), []byte(d.token)))
}

func nodeKey(node int64) string { return fmt.Sprintf("node/%07d", node) }

func nodeOf(key string) (node int64) {
	_, _ = fmt.Sscanf(key, "node/%d", &node)
	return node
}

// TestF19_SnapshotClone restores a virtual machine's snapshot beside its original. It
// is the documented limit of a lease: both issue the same IDs, but only from the grant
// at the time of the snapshot. The first to extend makes the other find out and
// continue with another node number.
func TestF19_SnapshotClone(t *testing.T) {
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			for _, first := range []string{"the original extends first", "the copy extends first"} {
				t.Run(first, func(t *testing.T) {
					snapshotClone(t, c, first == "the copy extends first")
				})
			}
		})
	}
}

// twin is the original or its copy.
type twin struct {
	keeper *lease.Keeper
	gen    *generator.Generator
	issued map[snowflake.ID]bool
}

func snapshotClone(t *testing.T, c claim, copyFirst bool) {
	const window = 9 * time.Second // a third is 3 s
	clock := clocktest.NewVirtual(noon)
	clock.AutoAdvance(true)
	cells := storetest.NewMemory()
	claimBy := func(store stores.Store) twin {
		two := layout()
		two.NodeBits = 1
		keeper, err := claimPolled(store, clock, generatortest.Raw, lease.WithWindow(window), lease.WithLayout(two))
		require.NoError(t, err)
		gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(c.strategy))
		require.NoError(t, err)
		return twin{keeper, gen, map[snowflake.ID]bool{}}
	}
	original := claimBy(cells.Client())
	node := original.keeper.Node()
	copied := claimBy(&double{Memory: cells.Client(), after: cells.Peek(nodeKey(node))})
	require.Equal(t, node, copied.keeper.Node())
	floor, limit := original.keeper.Granted()
	copiedFloor, copiedLimit := copied.keeper.Granted()
	require.Equal(t, [2]time.Time{floor, limit}, [2]time.Time{copiedFloor, copiedLimit})

	twins := []*twin{&original, &copied}
	if copyFirst {
		twins[0], twins[1] = twins[1], twins[0]
	}
	var lastTwice time.Time
	twice := 0
	for clock.Wall().Before(noon.Add(5 * window)) {
		for i, tw := range twins {
			// The two draw different instants for their first extension, where a real copy has
			// that of the original. So neither extends before the latest one.
			if clock.Wall().Sub(noon) >= window/3 {
				tw.keeper.Poll(t.Context())
			}
			for range 2 {
				id, err := tw.gen.Next()
				require.NoError(t, err, "both are served all the time")
				require.False(t, tw.issued[id], "the same twin issued %d twice", id)
				tw.issued[id] = true
				if twins[1-i].issued[id] {
					twice++
					d, err := tw.gen.Layout().Decode(id)
					require.NoError(t, err)
					lastTwice = d.Time
				}
			}
		}
		clock.Advance(10 * time.Millisecond)
	}
	assert.Positive(t, twice, "the copy is none: nothing came twice")
	assert.True(t, lastTwice.Before(limit), "%s was issued twice, and the grant ended at %s", lastTwice, limit)
	// By then the second to extend had found out, and had changed to another number as
	// soon as that had a tick: at the end of a third of the window.
	assert.LessOrEqual(t, lastTwice.Sub(floor), window/3+50*time.Millisecond)
	assert.Zero(t, twins[0].keeper.Stats().Conflicts)
	assert.EqualValues(t, 1, twins[1].keeper.Stats().Conflicts, "found out once")
	assert.Equal(t, node, twins[0].keeper.Node())
	assert.NotEqual(t, node, twins[1].keeper.Node())
	t.Logf("%d IDs came twice, the last %s after the snapshot", twice, lastTwice.Sub(floor))
}

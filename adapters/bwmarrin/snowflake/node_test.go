package snowflake_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
	flake "github.com/tickflake/tickflake/snowflake"
)

func newNode(t *testing.T, number int64) *snowflake.Node {
	t.Helper()
	node, err := snowflake.NewNode(number)
	require.NoError(t, err)
	return node
}

// layout sets the package's layout for a test.
func layout(t *testing.T, epoch time.Time, nodeBits, stepBits uint8) {
	e, n, s := snowflake.Epoch, snowflake.NodeBits, snowflake.StepBits
	t.Cleanup(func() { snowflake.Epoch, snowflake.NodeBits, snowflake.StepBits = e, n, s })
	snowflake.Epoch, snowflake.NodeBits, snowflake.StepBits = epoch.UnixMilli(), nodeBits, stepBits
}

// With two IDs per millisecond nearly every other call waits.
func TestGenerateAscends(t *testing.T) {
	layout(t, time.UnixMilli(snowflake.Epoch), 10, 1)
	node := newNode(t, 1)
	before := time.Now().UnixMilli()
	last := node.Generate()
	for range 100 {
		id := node.Generate()
		require.Greater(t, id, last)
		last = id
	}
	assert.GreaterOrEqual(t, last.Time(), before)
	assert.LessOrEqual(t, last.Time(), time.Now().UnixMilli()+1)
	stats := node.Generator().Stats()
	assert.Positive(t, stats.Waits)
	assert.Zero(t, stats.BorrowedTicks, "a full millisecond is waited for")
	assert.EqualValues(t, 1, last.Node())
}

// Nodes of one number, made at any time by any goroutine, never issue the same ID.
func TestNodesOfOneNumber(t *testing.T) {
	const callers, each = 8, 2000
	ids := make([][]snowflake.ID, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for range each {
				node, err := snowflake.NewNode(5)
				if !assert.NoError(t, err) {
					return
				}
				ids[i] = append(ids[i], node.Generate())
			}
		})
	}
	group.Wait()
	all := slices.Concat(ids...)
	require.Len(t, all, callers*each)
	slices.Sort(all)
	assert.Len(t, slices.Compact(all), callers*each)

	// The number is what they have in common, and nothing else.
	assert.EqualValues(t, 6, newNode(t, 6).Generate().Node())
	layout(t, time.UnixMilli(snowflake.Epoch).Add(time.Hour), 10, 12)
	assert.InDelta(t, time.Now().UnixMilli(), newNode(t, 5).Generate().Time(), 60_000)
}

func TestNodeNumbers(t *testing.T) {
	for _, n := range []int64{0, 1023} {
		assert.Equal(t, n, newNode(t, n).Generate().Node())
	}
	for _, n := range []int64{-1, 1024} {
		_, err := snowflake.NewNode(n)
		require.ErrorIs(t, err, flake.ErrRange)
		assert.ErrorContains(t, err, fmt.Sprintf("node %d is", n))
	}
	layout(t, time.UnixMilli(snowflake.Epoch), 3, 12)
	_, err := snowflake.NewNode(8)
	assert.Error(t, err)
	newNode(t, 7)
}

func TestLayouts(t *testing.T) {
	for widths, timeBits := range map[[2]uint8]int{{10, 12}: 41, {1, 21}: 41, {22, 0}: 41, {5, 5}: 53, {0, 1}: 62, {0, 0}: 62} {
		layout(t, time.Date(2020, 1, 2, 3, 4, 5, 678e6, time.UTC), widths[0], widths[1])
		assert.Equal(t, timeBits, snowflake.Layout().TimeBits)
		require.NoError(t, snowflake.Layout().Validate(), "%v", widths)
		id := newNode(t, 0).Generate()
		parts, err := snowflake.Layout().Decode(flake.ID(id))
		require.NoError(t, err)
		assert.Equal(t, parts.Time.UnixMilli(), id.Time(), "%v", widths)
		assert.Equal(t, parts.Node, id.Node())
		assert.Equal(t, parts.Sequence, id.Step())
		assert.InDelta(t, time.Now().UnixMilli(), id.Time(), 60_000)
	}
	assert.Equal(t, flake.Twitter().Epoch, time.UnixMilli(1288834974657).UTC())
}

func TestLayoutsThatCannotWork(t *testing.T) {
	for name, set := range map[string]func(){
		"no bits for the time":     func() { layout(t, time.UnixMilli(0), 40, 30) },
		"more bits than there are": func() { layout(t, time.UnixMilli(0), 255, 255) },
		"time is over":             func() { layout(t, time.UnixMilli(0), 20, 30) },
		"before 1970":              func() { layout(t, time.UnixMilli(-1), 10, 12) },
		"epoch still to come":      func() { layout(t, time.Now().Add(time.Hour), 10, 12) },
	} {
		set()
		_, err := snowflake.NewNode(0)
		assert.ErrorIs(t, err, flake.ErrLayout, name)
		id := snowflake.ID(1) << 40
		_, _, _ = id.Time(), id.Node(), id.Step() // whatever they are
	}
}

func TestDefaultLayoutIsTwitters(t *testing.T) {
	twitter := flake.Twitter()
	twitter.Name, twitter.Parts = "", nil
	assert.Equal(t, twitter, snowflake.Layout())
	id := snowflake.ID(1541815603606036480)
	assert.Equal(t, []int64{1656432460105, 378, 0}, []int64{id.Time(), id.Node(), id.Step()})
}

func TestCloseWithoutLease(t *testing.T) {
	node := newNode(t, 9)
	id := node.Generate()
	require.NoError(t, node.Close())
	assert.Greater(t, node.Generate(), id)
	assert.Greater(t, newNode(t, 9).Generate(), id)
}

// In a bubble, whose time begins in 2000, a node works that is of the bubble, with an
// epoch before that.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := snowflake.NewNode(901)
		assert.ErrorContains(t, err, "epoch")
		layout(t, time.Unix(0, 0), 10, 1)
		node := newNode(t, 901)
		begin := time.Now()
		for range 10 { // a millisecond has two
			node.Generate()
		}
		assert.Equal(t, 4*time.Millisecond, time.Since(begin).Truncate(time.Millisecond))
	})
}

package cases

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator"
)

func open(t *testing.T, c Case) Source {
	s, err := c.Open(t.Context())
	require.NoError(t, err)
	if s.Close != nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s
}

func everyCase() []Case { return append(All(), Floor(), SharedFloor()) }

// A source issues distinct IDs, also while loops take some, and they have the width
// that the case states: none is longer, and their last byte is in use.
func TestIDsAreDistinctAndOfTheirWidth(t *testing.T) {
	for _, c := range everyCase() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			const n = 10_000
			s := open(t, c)
			seen := make(map[ID]bool, n)
			var used ID // the bits that are set in any
			for range n {
				id, err := s.Issue()
				require.NoError(t, err)
				require.False(t, seen[id], "%x was issued twice", id)
				seen[id] = true
				for i, b := range id {
					used[i] |= b
				}
			}
			bytes := c.Bits / 8
			assert.NotZero(t, used[bytes-1], "the last byte of %d bits", c.Bits)
			for _, b := range used[bytes:] {
				assert.Zero(t, b, "beyond %d bits", c.Bits)
			}
		})
	}
}

func TestLoopsIssue(t *testing.T) {
	for _, c := range everyCase() {
		t.Run(c.Name, func(t *testing.T) {
			s := open(t, c)
			unit := max(c.Unit, 1)
			for _, n := range []int{0, unit, 3 * unit} {
				require.NoError(t, s.Loop()(n))
			}
			require.NoError(t, Together(s.Loops(3)...)(12*unit))
		})
	}
}

// still is a clock that stands still, so that every slot that was taken can be counted.
type still time.Time

func (s still) Now() time.Time { return time.Time(s) }

func TestLoopsOfOursIssueAsManyAsTheyAreTold(t *testing.T) {
	const n = 3 * 1024
	for name, test := range map[string]struct {
		loop    func(*generator.Generator) Loop
		skipped int64 // slots that may be left over
	}{
		"next":    {loopNext, 0},
		"context": {loopContext, 0},
		"batches": {loopBatches(1024), 0},
		"stream":  {loopStream, n / 2},
		"all":     {loopAll, n / 2},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := generator.New(generator.WithLayout(Wide()), generator.WithClock(still(time.Now())))
			require.NoError(t, err)
			require.NoError(t, test.loop(g)(n))
			id, err := g.Next()
			require.NoError(t, err)
			after, err := g.Layout().Decode(id)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, after.Sequence, int64(n))
			assert.LessOrEqual(t, after.Sequence, n+test.skipped)
		})
	}
}

func TestLoopsOfOthersIssueAsManyAsTheyAreTold(t *testing.T) {
	const n = 1000
	for _, c := range []Case{XID(), ObjectID()} { // they count
		t.Run(c.Name, func(t *testing.T) {
			s := open(t, c)
			count := func() uint32 {
				id, err := s.Issue()
				require.NoError(t, err)
				return binary.BigEndian.Uint32(id[8:12]) & 0xffffff
			}
			before := count()
			require.NoError(t, s.Loop()(n))
			assert.Equal(t, uint32(n+1), (count()-before)&0xffffff)
		})
	}
}

func TestFloorsCount(t *testing.T) {
	for _, c := range []Case{Floor(), SharedFloor()} {
		s := open(t, c)
		require.NoError(t, s.Loop()(1000))
		id, err := s.Issue()
		require.NoError(t, err)
		assert.Equal(t, idOfInt(1001), id, c.Name)
	}
}

// What is asked for is shared out, to the last one, and whatever fails is told.
func TestTogether(t *testing.T) {
	var sum atomic.Int64
	count := func(n int) error {
		sum.Add(int64(n))
		return nil
	}
	require.NoError(t, Together(count, count, count)(11))
	assert.EqualValues(t, 11, sum.Load())

	failed := errors.New("failed")
	require.ErrorIs(t, Together(count, func(int) error { return failed })(2), failed)
}

// The package variables of bwmarrin/snowflake are what they were, and what NewNode
// computes of them too, which Time reads.
func TestBwmarrinWideLeavesOthersAlone(t *testing.T) {
	wide := open(t, BwmarrinWide())
	_, err := wide.Issue()
	require.NoError(t, err)
	assert.EqualValues(t, 10, snowflake.NodeBits)
	assert.EqualValues(t, 12, snowflake.StepBits)
	assert.EqualValues(t, 3, snowflake.ID(3<<12).Node())
	node, err := snowflake.NewNode(1023)
	require.NoError(t, err)
	assert.EqualValues(t, 1023, node.Generate().Node())
}

func TestLimit(t *testing.T) {
	ms := Limit{IDs: 4096, Per: time.Millisecond}
	assert.InDelta(t, 244.14, ms.NanosecondsPerID(), 0.01)
	assert.True(t, ms.Binds())
	assert.Equal(t, 4096+8, ms.LeadIn(8))
	assert.Equal(t, "4,096 per 1ms", ms.String())
	assert.True(t, Limit{IDs: 1 << 16, Per: 4 * time.Millisecond}.Binds(), "61 ns, for which a fast machine waits")
	for _, l := range []Limit{{}, counter24, limitOf(Wide()), {IDs: 1, Per: time.Second, Repeats: true}, {IDs: 1, Per: time.Second, Ahead: true}} {
		assert.False(t, l.Binds(), l)
		assert.Zero(t, l.LeadIn(8), l)
	}
	assert.Equal(t, "none", Limit{}.String())
}

// A tick holds as many IDs as the limit says: in a bubble, none is over until they are
// used up. Those that wait for its end by spinning would never get out of the bubble,
// and those of package variables would still be ahead of the clock after it.
func TestLimitsOfPeers(t *testing.T) {
	for _, test := range []struct {
		Case
		below int // bits below the time
	}{
		{Sonyflake(), 24},
	} {
		t.Run(test.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(30 * 365 * 24 * time.Hour) // there are epochs after 2000, where a bubble begins
				s := open(t, test.Case)
				next := func() uint64 {
					id, err := s.Issue()
					require.NoError(t, err)
					return binary.BigEndian.Uint64(id[:8]) >> test.below
				}
				tick := next()
				for range test.Limit.IDs - 1 {
					require.Equal(t, tick, next())
				}
				require.Greater(t, next(), tick)
			})
		})
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range everyCase() {
		assert.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
		assert.Contains(t, []results.Group{results.Ours, results.Peers, results.Floor}, c.Group)
	}
}

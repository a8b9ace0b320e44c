package grant

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetry(t *testing.T) {
	for _, test := range []struct {
		window  time.Duration
		nodes   int64
		left    time.Duration
		want    time.Duration
		granted bool
	}{
		{30 * time.Second, 1024, 20 * time.Second, 9 * time.Second, true},
		{30 * time.Second, 1024, 5 * time.Second, 4700 * time.Millisecond, true},
		{30 * time.Second, 1024, 300 * time.Millisecond, 9 * time.Second, false},
		{time.Hour, 1024, 40 * time.Minute, 18 * time.Minute, true},
		{time.Hour, 1024, time.Minute, 59 * time.Second, true},
		{time.Hour, 1024, time.Second, Urgent, false},
		{time.Hour, 1024, -time.Minute, Urgent, false},
		{time.Hour, 1 << 16, 0, 65536 * time.Millisecond, false},
		{time.Minute, 1 << 22, math.MinInt64, 18 * time.Second, false},
		{6, 1024, 0, time.Millisecond, false},
	} {
		pause, granted := Retry(test.window, test.nodes, test.left)
		require.Equal(t, test.want, pause, "%+v", test)
		require.Equal(t, test.granted, granted, "%+v", test)
	}
}

func TestRetryClaim(t *testing.T) {
	for failures, most := range map[int]time.Duration{1: 40 * time.Millisecond, 2: 80 * time.Millisecond, 9: 9 * time.Second, 1000: 9 * time.Second} {
		require.InDelta(t, most/2, RetryClaim(30*time.Second, failures, 0), 1)
		require.InDelta(t, most, RetryClaim(30*time.Second, failures, math.MaxUint64), 1)
	}
	require.InDelta(t, 30*time.Hour, RetryClaim(100*time.Hour, 20, math.MaxUint64), 1)
}

func TestSpread(t *testing.T) {
	require.EqualValues(t, 1, Spread(time.Second, 0))
	require.Equal(t, time.Second, Spread(time.Second, math.MaxUint64))
	require.Equal(t, time.Second/4+1, Spread(time.Second, 1<<62))
}

// Tries that hang keep their interval, and tries that take nearly all of it leave the store some rest.
func TestNext(t *testing.T) {
	require.Equal(t, 109*time.Second, Next(100*time.Second, 102*time.Second, 9*time.Second))
	require.Equal(t, 112*time.Second, Next(100*time.Second, 108*time.Second, 8*time.Second))
}

// An extension is due when two thirds of a window are left.
func TestExtendAt(t *testing.T) {
	require.EqualValues(t, 80, ExtendAt(100, 31))
	require.Zero(t, ExtendAt(10, 30))
}

// A search reads every number once, in blocks that grow.
func TestSearch(t *testing.T) {
	for _, nodes := range []int64{1, 256, 1000, 1 << 14} {
		read := make([]bool, nodes)
		s := NewSearch(nodes, 12345)
		require.Equal(t, 12345%nodes/256*256, s.First)
		for most := int64(256); !s.Settled(NoRank); most = min(2*most, lastBlock) {
			from, n := s.Block()
			require.Positive(t, n)
			require.True(t, n == most || from+n == nodes || s.Done == nodes, "%d numbers from %d on", n, from)
			for node := from; node < from+n; node++ {
				require.False(t, read[node])
				read[node] = true
			}
		}
		require.NotContains(t, read, false)
	}
}

func TestSettled(t *testing.T) {
	for done, want := range map[int64][]bool{
		256: {true, false, false, false}, 4095: {true, false, false, false},
		4096: {true, true, true, false}, 8191: {true, true, true, false}, 8192: {true, true, true, true},
	} {
		for rank, want := range want {
			s := Search{Nodes: 8192, Done: done}
			require.Equal(t, want, s.Settled(Rank(rank)), "rank %d after %d numbers", rank, done)
		}
	}
}

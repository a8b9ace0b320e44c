package protocol_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/protocol"
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
		{time.Hour, 1024, time.Second, protocol.Urgent, false},
		{time.Hour, 1024, -time.Minute, protocol.Urgent, false},
		{time.Hour, 1 << 16, 0, 65536 * time.Millisecond, false},
		{time.Minute, 1 << 22, math.MinInt64, 18 * time.Second, false},
		{6, 1024, 0, time.Millisecond, false},
	} {
		pause, granted := protocol.Retry(test.window, test.nodes, test.left)
		require.Equal(t, test.want, pause, "%+v", test)
		require.Equal(t, test.granted, granted, "%+v", test)
	}
}

func TestRetryClaim(t *testing.T) {
	for failures, most := range map[int]time.Duration{1: 40 * time.Millisecond, 2: 80 * time.Millisecond, 9: 9 * time.Second, 1000: 9 * time.Second} {
		require.InDelta(t, most/2, protocol.RetryClaim(30*time.Second, failures, 0), 1)
		require.InDelta(t, most, protocol.RetryClaim(30*time.Second, failures, math.MaxUint64), 1)
	}
}

func TestSpread(t *testing.T) {
	require.EqualValues(t, 1, protocol.Spread(time.Second, 0))
	require.Equal(t, time.Second, protocol.Spread(time.Second, math.MaxUint64))
	require.Equal(t, time.Second/4+1, protocol.Spread(time.Second, 1<<62))
}

// Tries that hang keep their interval, and tries that take nearly all of it leave the store some rest.
func TestNext(t *testing.T) {
	require.Equal(t, 109*time.Second, protocol.Next(100*time.Second, 102*time.Second, 9*time.Second))
	require.Equal(t, 112*time.Second, protocol.Next(100*time.Second, 108*time.Second, 8*time.Second))
}

// A search reads every number once, in blocks that grow.
func TestSearch(t *testing.T) {
	for _, nodes := range []int64{1, 256, 1000, 1 << 16} {
		read := make([]bool, nodes)
		s, most := protocol.NewSearch(nodes, 12345), int64(0)
		for !s.Settled(protocol.None) {
			from, n := s.Block()
			most = max(most, n)
			for node := from; node < from+n; node++ {
				require.False(t, read[node])
				read[node] = true
			}
		}
		require.NotContains(t, read, false)
		require.LessOrEqual(t, most, int64(protocol.LastBlock))
	}
}

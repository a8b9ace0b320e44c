package ways

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counter reserves numbers, and remembers how many each time.
type counter struct {
	mu     sync.Mutex
	last   int64
	sizes  []int64
	broken error
}

func (c *counter) reserve(_ context.Context, n int64) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return 0, c.broken
	}
	c.last += n
	c.sizes = append(c.sizes, n)
	return c.last, nil
}

// draw has several goroutines take numbers at once, and returns them sorted.
func draw(t *testing.T, next func(context.Context) (int64, error), each int) []int64 {
	const callers = 4
	got := make([][]int64, callers)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			for range each {
				id, err := next(t.Context())
				assert.NoError(t, err)
				got[i] = append(got[i], id)
			}
		})
	}
	group.Wait()
	all := slices.Concat(got...)
	slices.Sort(all)
	return all
}

// count returns 1, 2, … n.
func count(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i + 1)
	}
	return all
}

func TestSegments(t *testing.T) {
	var c counter
	s := newSegments(c.reserve)
	assert.Equal(t, count(4*625), draw(t, s.Next, 625), "each number once")
	assert.Equal(t, []int64{1000, 1000, 1000}, c.sizes)

	c.broken = errors.New("no server")
	for range 500 {
		_, err := s.Next(t.Context())
		require.NoError(t, err, "there is a rest")
	}
	_, err := s.Next(t.Context())
	require.ErrorIs(t, err, c.broken)
	c.broken = nil
	id, err := s.Next(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 3001, id)
}

func TestPrefetchedSegmentsGrow(t *testing.T) {
	var c counter
	p := newPrefetched(c.reserve, 5000)
	assert.Equal(t, count(4*2600), draw(t, p.Next, 2600), "each number once")
	p.Close()
	assert.Equal(t, []int64{1000, 2000, 4000, 4000, 4000}, c.sizes, "doubled while that is at most 5000")
}

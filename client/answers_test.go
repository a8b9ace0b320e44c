package client

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/snowflake"
)

// TestBadAnswers guards that no ID of an answer that breaks the protocol is issued, and that
// another server is asked.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*tickflakev1.TakeResponse){
		"no runs":             func(r *tickflakev1.TakeResponse) { r.Runs = nil },
		"a nil run":           func(r *tickflakev1.TakeResponse) { r.Runs[0] = &tickflakev1.Run{} },
		"more than asked for": func(r *tickflakev1.TakeResponse) { r.Runs[0].Count++ },
		"more in all":         func(r *tickflakev1.TakeResponse) { r.Runs = append(r.Runs, r.Runs[0]) },
		"a negative count":    func(r *tickflakev1.TakeResponse) { r.Runs[0].Count = -1 },
		"a negative ID":       func(r *tickflakev1.TakeResponse) { r.Runs[0].First = -5 },
		"ID 0":                func(r *tickflakev1.TakeResponse) { r.Runs[0].First = 0 },
		"beyond 63 bits":      func(r *tickflakev1.TakeResponse) { r.Runs[0].First, r.Runs[0].Stride = 1<<62, 1<<61 },
		"stride 0":            func(r *tickflakev1.TakeResponse) { r.Runs[0].Stride = 0 },
		"another stride":      func(r *tickflakev1.TakeResponse) { r.Runs[0].Stride = 2 },
		"two nodes":           func(r *tickflakev1.TakeResponse) { r.Runs[0].First |= 0xfff },
		"no time to use it":   func(r *tickflakev1.TakeResponse) { r.Runs[0].UseWithin = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &network{}
				bad, good := n.start(t, 1), n.start(t, 2)
				bad.change = change
				c := open(t, []*fake{bad, good}, WithPrefetch(10, 10))
				prefer(c, 0)
				id, err := c.Next(t.Context())
				require.NoError(t, err)
				d, err := c.Decode(id)
				require.NoError(t, err)
				assert.Equal(t, int64(2), d.Node)
				assert.Equal(t, uint64(1), c.Stats().Failures)
				assert.ErrorContains(t, c.Stats().Servers[0].Err, "answer")
			})
		})
	}
}

// TestHold guards that an answer waits for those of other requests, but not for long.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		c := open(t, []*fake{s})
		first := true
		s.set(func() {
			s.change = func(*tickflakev1.TakeResponse) { // the answer to the first request is late
				s.delay = 0
				if first {
					s.delay = 3 * time.Millisecond
				}
				first = false
			}
		})
		require.NoError(t, c.NextN(t.Context(), make([]snowflake.ID, 20_000)))
		assert.Equal(t, 2, s.requests("Take"))
		assert.Zero(t, c.Stats().Disordered)

		synctest.Wait() // no request of this client runs
		s.set(func() {
			first = true
			s.change = func(*tickflakev1.TakeResponse) {
				s.delay = 0
				if first {
					s.delay = time.Second
				}
				first = false
			}
		})
		c = open(t, []*fake{s})
		go func() { assert.NoError(t, c.NextN(t.Context(), make([]snowflake.ID, 20_000))) }()
		time.Sleep(longestHold - 1)
		synctest.Wait()
		assert.Zero(t, c.Stats().Issued)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, uint64(10_000), c.Stats().Issued)
		time.Sleep(2 * time.Second)
		sums(t, c)
	})
}

// TestTooFar takes IDs of a server whose answers take longer than its IDs are true.
func TestTooFar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s := n.start(t, 1)
		c := open(t, []*fake{s}, WithFreshness(20*time.Millisecond))
		s.set(func() { s.delay = 30 * time.Millisecond })
		_, err := c.Next(t.Context())
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, "its answer took 30ms, and its IDs are to be used within 20ms")
		assert.Less(t, s.requests("Take"), 20)
		s.set(func() { s.delay = 10 * time.Millisecond })
		time.Sleep(time.Second)
		_, err = c.Next(t.Context())
		require.NoError(t, err)
	})
}

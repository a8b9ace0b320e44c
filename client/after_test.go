package client

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/snowflake"
)

// TestNextAfter guards that the ID is above the one that was seen and above all that were returned, that no
// ID at hand is dropped but those below it, and that a seen which servers reject harms no other call.
func TestNextAfter(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		c.level = 100
		first, _ := next(t, c)
		highest := first
		after := func(seen snowflake.ID) snowflake.ID {
			id, err := c.NextAfter(t.Context(), seen)
			require.NoError(t, err)
			assert.Greater(t, id, max(seen, highest))
			highest = id
			return id
		}
		assert.Equal(t, first+1, after(first), "the next one")
		assert.Equal(t, first+2, after(-1))
		assert.Equal(t, first+41, after(first+40), "those up to it are dropped, and no others")
		id, _ := next(t, c)
		assert.Equal(t, first+42, id)
		assert.Equal(t, uint64(38), c.Stats().Disordered)
		synctest.Wait()
		asked := s[0].asked("Take")

		highest = id
		ahead, err := layout().Min(time.Now().Add(50 * time.Millisecond))
		require.NoError(t, err)
		answered := after(ahead)
		assert.Equal(t, asked+1, s[0].asked("Take"), "only a server can tell")
		id, _ = next(t, c)
		assert.Greater(t, id, answered)

		highest = id
		far := id + 1<<40
		for delay, waits := range map[time.Duration]time.Duration{time.Second: time.Second, time.Minute: 0} {
			s[0].has(busy(delay))
			if waits > 0 {
				time.AfterFunc(waits-1, func() { s[0].has(fault{}) })
			}
			began, before := time.Now(), c.Stats()
			_, err = c.NextAfter(t.Context(), far)
			assert.Equal(t, waits, time.Since(began))
			if waits == 0 {
				assert.Positive(t, before.Ahead)
				assert.Equal(t, before.Disordered, c.Stats().Disordered, "what is at hand is for others")
				assert.ErrorIs(t, err, ErrBusy)
				assert.ErrorContains(t, err, "server-1")
			} else {
				require.NoError(t, err)
			}
			s[0].has(fault{})
			far += 1 << 40
			_, took := next(t, c)
			assert.Zero(t, took)
			assert.Zero(t, c.Stats().Failures, "the server serves others")
		}

		s[0].has(fault{change: func(r *tickflakev1.TakeResponse) { r.Runs[0].First = int64(first) }})
		_, err = c.NextAfter(t.Context(), far+1<<40)
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, "is not above")

		s[0].has(fault{delay: time.Second / 2})
		time.Sleep(time.Second) // the server is asked again
		time.AfterFunc(time.Second/4, func() { assert.NoError(t, c.Restored(t.Context())) })
		began := time.Now()
		_, err = c.NextAfter(t.Context(), far+2<<40)
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(began), "the ID that was asked for before is not issued")
		s[0].stop()
		_, err = c.NextAfter(t.Context(), far+3<<40)
		assert.ErrorIs(t, err, ErrUnavailable)
	})
}

// TestNextAfterElsewhere guards that the next server is asked when one rejects what was seen, that the call
// waits for the first that allows it, and that the ID of a server whose clock is behind is above those of
// another one that were returned before.
func TestNextAfterElsewhere(t *testing.T) {
	virtual(t, 2, func(t *testing.T, s []*fake) {
		s[0].skew = time.Second
		c := open(t, s)
		last, _ := next(t, c)
		for i, row := range []struct {
			first, second fault
			waits         time.Duration
		}{
			{busy(time.Second), fault{}, 0},
			{busy(time.Second), busy(2 * time.Second), time.Second},
			{busy(2 * time.Second), busy(time.Second), time.Second},
			{away, busy(time.Second), time.Second},
			{busy(0), busy(time.Second), time.Second},
			{busy(time.Second), busy(0), time.Second},
		} {
			c.prefer(forAfter, c.servers[0])
			s[0].has(row.first)
			s[1].has(row.second)
			time.AfterFunc(time.Second-1, func() { s[0].has(fault{}); s[1].has(fault{}) })
			began, failures := time.Now(), c.Stats().Failures
			id, err := c.NextAfter(t.Context(), last)
			require.NoError(t, err)
			assert.Greater(t, id, last)
			assert.Equal(t, row.waits, time.Since(began), "row %d", i)
			assert.Equal(t, row.first.err == away.err, c.Stats().Failures > failures, "row %d: a server that rejects serves others", i)
			last = id
			time.Sleep(10 * time.Second)
		}
		last, _ = next(t, c) // of the server whose clock is ahead
		s[0].stop()
		id, err := c.NextAfter(t.Context(), 1)
		require.NoError(t, err)
		assert.Greater(t, id, last)
	})
}

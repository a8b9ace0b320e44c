//go:build unix

package sequences

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
)

// The calls of three processes of an ordered sequence, on real stores, are linearizable, and so
// are those that read its highest number. Without a crash no number is missing. With segments
// the order is missed, and the check sees it.
func testProcesses(t *testing.T, p place, mode sequence.Mode) {
	j := job{URL: p.url, Name: "orders", Callers: 4, Calls: 40, Batch: 3, Inspect: mode == sequence.Ordered, Together: true, Pace: time.Millisecond,
		Definition: sequence.Definition{Mode: mode, Start: 1, MinStep: 20, MaxStep: 20}}
	if mode == sequence.Segmented {
		j.Calls = 200 // so long that the processes surely overlap
	}
	var h history
	var living sync.WaitGroup
	var all [3]*process
	for i := range all {
		all[i] = j.start(t)
		t.Cleanup(all[i].kill)
	}
	for _, p := range all {
		_, ok, err := p.next()
		require.NoError(t, err)
		require.True(t, ok, "it is not ready")
	}
	for i, p := range all {
		require.NoError(t, p.input.Close())
		living.Go(func() { assert.NoError(t, p.finish(i, &h)) })
	}
	living.Wait()
	issued := h.issued(t)
	assert.Equal(t, int64(3*4*(j.Calls*4/5+j.Calls/5*3)), issued)
	if mode == sequence.Segmented {
		assert.False(t, h.linearizable(), "the check sees no disorder")
		return
	}
	assert.True(t, h.linearizable())
	info, err := sequence.Inspect(t.Context(), p.open(t), j.Name)
	require.NoError(t, err)
	assert.Equal(t, issued, info.Last, "a number is missing, and there was no crash")
	t.Logf("%d numbers by %d writes", issued, info.Writes)
}

// finish records the calls of a process until it has done its job.
func (p *process) finish(number int, h *history) error {
	for {
		c, ok, err := p.next()
		if !ok {
			return errors.Join(err, p.wait())
		}
		c.process = number
		h.add(c)
	}
}

//go:build unix

package sequences

import (
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
)

var kills = flag.Int("kills", 200, "kill so many processes in each test of killed processes")

// Three processes take numbers of one sequence and are killed with kill -9 and started
// again. No number is issued twice, and no more are missing than the documented bound for each
// kill. A number counts as issued when the process has written it to its pipe.
func TestKilled(t *testing.T) {
	onEngines(t, func(t *testing.T, on engine) {
		t.Run("segmented", func(t *testing.T) {
			t.Parallel()
			// A segment lasts longer than a refill, so that a killed process mostly has one.
			const step, batch, pace = 50, 7, 200 * time.Microsecond
			testKilled(t, on(t), 100, job{Name: "invoices", Callers: 2, Batch: batch, Pace: pace,
				Definition: sequence.Definition{Start: 1, MinStep: step, MaxStep: step}}, 2*step+batch)
		})
		t.Run("ordered", func(t *testing.T) {
			t.Parallel()
			const callers, batch = 2, 7
			testKilled(t, on(t), 20, job{Name: "orders", Callers: callers, Batch: batch,
				Definition: sequence.Definition{Mode: sequence.Ordered, Start: 1}}, callers*batch)
		})
	})
}

// testKilled kills each process when it has made fewer calls than most.
func testKilled(t *testing.T, p place, most int, j job, bound int64) {
	j.URL = p.url
	store := p.open(t)
	require.NoError(t, sequence.Create(t.Context(), store, j.Name, j.Definition))
	var h history
	var left atomic.Int64
	left.Store(int64(*kills))
	var living sync.WaitGroup
	for slot := range 3 {
		living.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(slot)))
			for left.Add(-1) >= 0 {
				// At the start, or at any moment after it.
				before := 0
				if random.IntN(8) > 0 {
					before = 1 + random.IntN(most)
				}
				if !live(t, j, slot, before, &h) {
					return
				}
			}
		})
	}
	living.Wait()
	if t.Failed() {
		return
	}
	info, err := sequence.Inspect(t.Context(), store, j.Name)
	require.NoError(t, err)
	issued := h.issued(t)
	missing := info.Next - info.Definition.First() - issued
	t.Logf("%d numbers issued by %d processes, which were killed; %d are missing, and %d may be; %d writes",
		issued, *kills, missing, int64(*kills)*bound, info.Writes)
	assert.GreaterOrEqual(t, missing, int64(0), "a number was issued that the store has not granted")
	assert.LessOrEqual(t, missing, int64(*kills)*bound)
	assert.Positive(t, missing, "the kills have cost nothing, so the test shows nothing")
	if j.Definition.Mode == sequence.Ordered {
		assert.True(t, h.linearizable())
	}
}

// live runs a process, kills it after it has made some calls, and reports whether all was well.
func live(t *testing.T, j job, slot, calls int, h *history) bool {
	p := j.start(t)
	for n := 0; ; n++ {
		if n == calls {
			p.kill() // and what it has printed meanwhile counts as well
		}
		c, ok, err := p.next()
		if !ok {
			return assert.NoError(t, err) && assert.NoError(t, p.wait()) && assert.GreaterOrEqual(t, n, calls, "it has ended by itself")
		}
		c.process = slot
		h.add(c)
	}
}

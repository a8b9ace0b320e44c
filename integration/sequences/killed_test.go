//go:build unix

package sequences

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/sequence"
)

var kills = flag.Int("kills", 40, "kill so many processes of a segmented sequence, and a quarter as many of an ordered one")

// Three processes take numbers of one sequence and are killed with kill -9 and started
// again. No number is issued twice, and no more are missing than the documented bound for each
// kill. A number counts as issued when the process has written it to its pipe.
func testKilled(t *testing.T, url string, mode sequence.Mode) {
	// A segment lasts longer than a refill, so that a killed process mostly has one.
	const step, batch, callers = 50, 7, 2
	j := job{Name: "invoices", Callers: callers, Batch: batch, Pace: 200 * time.Microsecond,
		Definition: sequence.Definition{Mode: mode, Start: 1, MinStep: step, MaxStep: step}}
	lives, most, bound := *kills, 100, int64(2*step+batch)
	if mode == sequence.Ordered { // every number takes a write
		lives, most, bound = max(lives/4, 1), 20, callers*batch
	}
	j.URL = url
	store := open(t, url)
	require.NoError(t, sequence.Create(t.Context(), store, j.Name, j.Definition))
	var l fleet.Ledger
	var left atomic.Int64
	left.Store(int64(lives))
	var living sync.WaitGroup
	for slot := range 3 {
		living.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(slot)))
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				// At the start, or at any moment after it.
				before := 0
				if random.IntN(8) > 0 {
					before = 1 + random.IntN(most)
				}
				j := j
				if j.Dies = i == 0; j.Dies { // any other kill may cost nothing
					before = -1
				}
				if !live(t, j, fmt.Sprint("process ", slot), before, &l) {
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
	issued := checkUnique(t, &l)
	missing := info.Next - info.Definition.First() - issued
	t.Logf("%d numbers issued by %d processes, which were killed; %d are missing, and %d may be; %d writes",
		issued, lives, missing, int64(lives)*bound, info.Writes)
	assert.GreaterOrEqual(t, missing, int64(0), "a number was issued that the store has not granted")
	assert.LessOrEqual(t, missing, int64(lives)*bound)
	assert.Positive(t, missing, "a process that died with a number has cost none")
	if j.Definition.Mode == sequence.Ordered {
		late, example := l.Disorder(false)
		assert.Zero(t, late, example)
	}
}

// live runs a process, kills it after it has made so many calls, unless they are -1 and it kills
// itself, and reports whether all was well. What it has printed before it is dead counts.
func live(t *testing.T, j job, source string, calls int, l *fleet.Ledger) bool {
	reached := make(chan struct{})
	p, err := j.start(t.Context(), l, source, nil, func(n int) {
		if n == calls {
			close(reached)
		}
	})
	if !assert.NoError(t, err) {
		return false
	}
	if calls == 0 {
		close(reached)
	}
	if calls >= 0 {
		select {
		case <-reached:
		case <-p.Ended():
		}
		if !assert.True(t, p.Running(), "it has ended by itself: %s", p.Output()) || !assert.NoError(t, p.Kill()) {
			return false
		}
	}
	return assert.ErrorContains(t, p.Wait(), "signal: killed", p.Output())
}

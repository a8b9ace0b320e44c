//go:build unix

package service

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/strategies"
)

// The server's clock is stepped back and forth under the load of all protocols. No ID is
// issued twice, the IDs of each connection ascend, and calls are refused where the strategy
// says so, by the error of the protocol, and nowhere else.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strategy strategies.Strategy
		rejects  bool
	}{
		"wait":   {strategies.Wait(), false},
		"borrow": {strategies.BorrowUpTo(time.Second), false},
		"reject": {strategies.Reject(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testClockSteps(t, c.strategy, c.rejects)
		})
	}
}

func testClockSteps(t *testing.T, strategy strategies.Strategy, rejects bool) {
	clock := clocktest.NewVirtual(time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC))
	g, err := generator.New(generator.WithNode(1), generator.WithClock(clock), generator.WithStrategy(strategy))
	require.NoError(t, err)
	s := serveHere(t, service.Config{Generator: g, Timeout: patience})
	var l ledger
	done := make(chan struct{})
	var working sync.WaitGroup
	var attempts atomic.Int64
	refused := map[string]*atomic.Int64{}
	for name, open := range callers {
		count := new(atomic.Int64)
		refused[name] = count
		working.Go(func() {
			c := open(s.addresses)
			defer c.close()
			last := int64(0)
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				ids, err := c.ids(t.Context(), 1+i%5)
				attempts.Add(1)
				if r, ok := errors.AsType[*refusal](err); ok && r.busy {
					count.Add(1)
					continue
				}
				if !assert.NoError(t, err, name) {
					return
				}
				for _, id := range ids {
					if !assert.Greater(t, id, last, "%s: IDs of one connection", name) {
						return
					}
					last = id
				}
				l.addIDs(ids...)
			}
		})
	}
	// Time passes until callers have made so many attempts: those that wait need it.
	pass := func(n int64) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for until := attempts.Load() + n; attempts.Load() < until && !t.Failed(); clock.Advance(time.Millisecond) {
			if !assert.NoError(t, ctx.Err(), "the callers hang") {
				return
			}
			time.Sleep(20 * time.Microsecond) // leave them the processor
		}
	}
	// Each protocol has met a step back, if it is refused then.
	shown := func() bool {
		for _, count := range refused {
			if count.Load() == 0 {
				return !rejects
			}
		}
		return true
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := 0; n < fewer(40) || n < 4000 && !shown() && !t.Failed(); n++ {
		back := time.Duration(1+random.IntN(100)) * time.Millisecond
		clock.Step(-back)
		pass(int64(10 + random.IntN(20)))
		clock.Step(back)
		pass(int64(10 + random.IntN(20)))
	}
	close(done)
	drained := make(chan struct{})
	go func() { working.Wait(); close(drained) }()
	for waiting := true; waiting; clock.Advance(10 * time.Millisecond) {
		select {
		case <-drained:
			waiting = false
		case <-time.After(time.Millisecond): // the last calls may wait for the clock
		}
	}
	for name, count := range refused {
		t.Logf("%s: %d calls refused", name, count.Load())
		assert.Equal(t, rejects, count.Load() > 0, "%s: calls refused: %d", name, count.Load())
	}
	l.check(t, 100)
}

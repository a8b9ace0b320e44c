package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/snowflake"
)

// TestRandomFaults runs callers against three servers whose clocks differ, and which fail,
// reject, hang, answer late, restart and send runs again, at random. No ID comes twice, IDs
// ascend, none is too old, each is counted, and no call fails by anything but its context or
// an outage.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			virtual(t, 3, func(t *testing.T, servers []*fake) { randomFaults(t, seed, servers) })
		})
	}
}

func randomFaults(t *testing.T, seed uint64, servers []*fake) {
	random := rand.New(rand.NewPCG(seed, 7))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}
	const useWithin = 200 * time.Millisecond
	l := layout()
	l.SequenceBits, l.NodeBits = 6, 8
	if seed%2 == 0 {
		l.Order = snowflake.TimeSequenceNode
	}
	skews := map[int64]time.Duration{}
	for _, s := range servers {
		skews[s.node] = between(0, 40*time.Millisecond)
		s.layout, s.useWithin, s.skew, s.maxBatch = l, useWithin, skews[s.node], 200
	}
	c := open(t, servers, WithPrefetch(50, 10_000), WithTimeout(500*time.Millisecond))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var all []snowflake.ID
	var top atomic.Int64 // the largest ID that a call has returned
	// took checks the IDs of a call. It took all but the first in turn with other callers.
	took := func(floor int64, began time.Time, ids []snowflake.ID) {
		for i, id := range ids {
			assert.Greater(t, int64(id), floor)
			floor = int64(id)
			d, err := l.Decode(id)
			require.NoError(t, err)
			assert.True(t, i > 0 || began.Add(skews[d.Node]).Sub(d.Time) <= useWithin+l.Tick, "too old")
		}
		for old := top.Load(); len(ids) == 1 && old < floor && !top.CompareAndSwap(old, floor); old = top.Load() {
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, ids...)
	}
	var callers sync.WaitGroup
	for k := range 6 {
		random := rand.New(rand.NewPCG(seed, uint64(100+k)))
		callers.Go(func() {
			for ctx.Err() == nil {
				if time.Now().UnixMilli()%1000 > 600 { // all are idle
					time.Sleep(400 * time.Millisecond)
				}
				call, cancel := t.Context(), context.CancelFunc(func() {})
				bounded := random.IntN(8) == 0
				if bounded {
					call, cancel = context.WithTimeout(call, time.Duration(random.Int64N(int64(50*time.Millisecond))))
				}
				ids := make([]snowflake.ID, 1+random.IntN(400))
				floor, began := top.Load(), time.Now()
				var err error
				switch {
				case k == 0 && random.IntN(4) == 0:
					err = c.NextN(call, ids)
				case k == 1 && random.IntN(2) == 0:
					floor += random.Int64N(1 << 15) // two ticks
					ids = ids[:1]
					if ids[0], err = c.NextAfter(call, snowflake.ID(floor)); errors.Is(err, ErrBusy) {
						err = ErrUnavailable // a server has rejected it, and did not for long enough
					}
				default:
					ids = ids[:1]
					ids[0], err = c.Next(call)
				}
				if err == nil {
					took(floor, began, ids)
				} else if !bounded || !errors.Is(err, context.DeadlineExceeded) {
					assert.ErrorIs(t, err, ErrUnavailable)
				}
				cancel()
				time.Sleep(time.Duration(random.Int64N(int64([]time.Duration{4 * time.Millisecond, 20 * time.Millisecond, time.Second}[k%3]))))
			}
		})
	}
	overlap := func(r *tickflakev1.TakeResponse) { // two runs overlap, and come in the wrong order
		if first := r.Runs[0]; first.Count > 2 {
			half := first.Count / 2
			second := &tickflakev1.Run{First: first.First + (half-1)*first.Stride, Count: 1, Stride: first.Stride, UseWithin: first.UseWithin}
			first.Count = half
			r.Runs = append([]*tickflakev1.Run{second}, first)
		}
	}
	for range 40 {
		s := servers[random.IntN(len(servers))]
		switch random.IntN(9) {
		case 0:
			s.has(away)
		case 1:
			s.has(busy(between(0, 100*time.Millisecond)))
		case 2:
			s.has(fault{hang: true, only: "Take"})
		case 3:
			s.has(fault{delay: between(0, 400*time.Millisecond)})
		case 4:
			s.stop()
			time.Sleep(between(0, 100*time.Millisecond))
			s.listen()
		case 5:
			s.has(fault{change: overlap})
		case 6:
			require.NoError(t, c.Restored(t.Context()))
		default:
			s.has(fault{})
		}
		time.Sleep(between(0, 200*time.Millisecond))
	}
	stop()
	callers.Wait()
	slices.Sort(all)
	assert.Len(t, slices.Compact(slices.Clone(all)), len(all), "an ID comes twice")
	s := c.Stats()
	assert.GreaterOrEqual(t, s.Issued, uint64(len(all)))
	t.Logf("%+v", s)
	assert.NotZero(t, min(s.Expired, s.Disordered, s.Failures, s.Waits), "this test shows nothing")
}

package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/snowflake"
)

// TestRandomFaults runs callers against three servers whose clocks differ, and which fail,
// reject, hang, answer late, restart and send runs again, at random. No ID comes twice, IDs
// ascend, none is too old, each is counted, and no call fails by anything but its context or
// an outage.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	var sum Stats
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			s := randomFaults(t, seed)
			sum.Issued += s.Issued
			sum.Expired += s.Expired
			sum.Disordered += s.Disordered
			sum.Lost += s.Lost
			sum.Hedges += s.Hedges
			sum.Failures += s.Failures
			sum.Waits += s.Waits
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for name, n := range map[string]uint64{"issued": sum.Issued, "expired": sum.Expired, "disordered": sum.Disordered,
		"lost": sum.Lost, "hedges": sum.Hedges, "failures": sum.Failures, "waits": sum.Waits} {
		assert.Greater(t, n, uint64(10), "%s: this test shows nothing", name)
	}
	t.Logf("%+v", sum)
}

func randomFaults(t *testing.T, seed uint64) Stats {
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
	n := &network{}
	var servers []*fake
	skews := map[int64]time.Duration{}
	for i := range int64(3) {
		node := (i*5 + 3) % 7
		s := n.start(t, node)
		skews[node] = between(0, 40*time.Millisecond)
		s.set(func() { s.layout, s.useWithin, s.skew, s.maxBatch = l, useWithin, skews[node], 200 })
		servers = append(servers, s)
	}
	c := open(t, servers, WithPrefetch(50, 10_000), WithTimeout(500*time.Millisecond), WithHedging(20*time.Millisecond))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var all []snowflake.ID
	var top atomic.Int64 // the largest ID that a call has returned
	took := func(floor int64, began time.Time, ids ...snowflake.ID) {
		for _, id := range ids {
			assert.Greater(t, int64(id), floor)
			floor = int64(id)
			d, err := l.Decode(id)
			require.NoError(t, err)
			assert.LessOrEqual(t, began.Add(skews[d.Node]).Sub(d.Time), useWithin+l.Tick)
		}
		for old := top.Load(); old < floor && !top.CompareAndSwap(old, floor); old = top.Load() {
		}
		mu.Lock()
		all = append(all, ids...)
		mu.Unlock()
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
				if random.IntN(8) == 0 {
					call, cancel = context.WithTimeout(call, time.Duration(random.Int64N(int64(50*time.Millisecond))))
				}
				ids := make([]snowflake.ID, 1+random.IntN(400))
				floor, began := top.Load(), time.Now()
				var err error
				if k == 0 && random.IntN(4) == 0 {
					err = c.NextN(call, ids)
				} else {
					ids = ids[:1]
					ids[0], err = c.Next(call)
				}
				switch {
				case err == nil && len(ids) == 1:
					took(floor, began, ids...)
				case err == nil: // took one after the other, in turn with other callers
					took(floor, began, ids[0])
					for i := range ids[1:] {
						if ids[i+1] <= ids[i] {
							t.Errorf("%d after %d", ids[i+1], ids[i])
						}
					}
					mu.Lock()
					all = append(all, ids[1:]...)
					mu.Unlock()
				case call.Err() != nil && errors.Is(err, context.DeadlineExceeded):
					_, deadline := call.Deadline()
					assert.True(t, deadline)
				default:
					assert.ErrorIs(t, err, ErrUnavailable)
				}
				cancel()
				time.Sleep(time.Duration(random.Int64N(int64([]time.Duration{4 * time.Millisecond, 20 * time.Millisecond, time.Second}[k%3]))))
			}
		})
	}
	for range 40 {
		s := servers[random.IntN(len(servers))]
		switch random.IntN(9) {
		case 0:
			s.fail(status.Error(codes.Unavailable, "about to stop"))
		case 1:
			s.fail(busy(between(0, 100*time.Millisecond)))
		case 2:
			s.set(func() { s.before = hang })
		case 3:
			s.set(func() { s.delay = between(0, 400*time.Millisecond) })
		case 4:
			s.stop()
			time.Sleep(between(0, 100*time.Millisecond))
			s.listen()
		case 5: // two runs overlap, and come in the wrong order
			s.set(func() {
				s.change = func(r *tickflakev1.TakeResponse) {
					if first := r.Runs[0]; first.Count > 2 {
						half := first.Count / 2
						second := &tickflakev1.Run{First: first.First + (half-1)*first.Stride, Count: 1, Stride: first.Stride, UseWithin: first.UseWithin}
						first.Count = half
						r.Runs = append([]*tickflakev1.Run{second}, first)
					}
				}
			})
		case 6:
			require.NoError(t, c.Restored(t.Context()))
		default:
			s.set(func() { s.before, s.delay, s.change = nil, 0, nil })
		}
		time.Sleep(between(0, 200*time.Millisecond))
	}
	stop()
	callers.Wait()
	for _, s := range servers {
		s.set(func() { s.before, s.delay, s.change = nil, 0, nil })
	}
	slices.Sort(all)
	assert.Len(t, slices.Compact(slices.Clone(all)), len(all), "an ID comes twice")
	time.Sleep(time.Second) // what was asked for has come
	sums(t, c)
	stats := c.Stats()
	assert.GreaterOrEqual(t, stats.Issued, uint64(len(all)))
	require.NoError(t, c.Close())
	return stats
}

// TestSilence guards that calls fail after the timeout where servers take requests and do not
// answer, as behind a network that drops packets. Their failures come one after the other, so
// that at each of them the other server is due, and a request runs at any time.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		servers := []*fake{n.start(t, 1), n.start(t, 2)}
		c := open(t, servers)
		for _, s := range servers {
			s.set(func() { s.before = hang })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 3 {
			began := time.Now()
			_, err := c.Next(ctx)
			assert.ErrorIs(t, err, ErrUnavailable)
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.LessOrEqual(t, time.Since(began), 2*DefaultTimeout)
		}
		servers[0].fail(nil)
		servers[1].fail(nil)
		time.Sleep(DefaultTimeout) // the request that runs has failed
		_, err := c.Next(ctx)
		assert.NoError(t, err)
		sums(t, c)
	})
}

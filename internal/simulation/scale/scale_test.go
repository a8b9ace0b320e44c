package main

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

var full = flag.Bool("scale.full", false, "run real keepers through every outage of the page, not the first only")

// The column of the smallest fleet is that of this code.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/scale.md")
	require.NoError(t, err)
	for row, value := range column(plans[0], simulate(plans[0])) {
		require.Contains(t, string(page), "\n| "+rows[row]+" | "+value+" |", "go run ./internal/simulation/scale")
	}
}

// A fleet of real keepers, each with its goroutine, does the same to the same store.
func TestRealKeepers(t *testing.T) {
	p := plans[0]
	p.brief = !*full
	want := simulate(p)
	var got figures
	synctest.Test(t, func(t *testing.T) {
		s := newStore(p.seed, p.capacity(), p.processes(), p.outages())
		d := newReal(t, p, s)
		got = carryOut(p, s, d)
		d.end()
	})
	t.Logf("real:      %+v", got)
	t.Logf("simulated: %+v", want)
	meets(t, got)
	meets(t, want)
	// Not of the real fleet, whose keepers draw anew in each run: it is a median of ten claims.
	assert.LessOrEqual(t, want.Trips, int32(4))
	assert.InEpsilon(t, want.Rest, got.Rest, 0.02)
	assert.InEpsilon(t, want.Start, got.Start, 0.4, "the slowest of a thousand")
	for i := range want.AfterPeak {
		if i == 0 || !p.brief {
			assert.InEpsilon(t, want.AfterPeak[i], got.AfterPeak[i], 0.25)
			assert.InDelta(t, want.AfterSeconds[i], got.AfterSeconds[i], 0.5)
		}
	}
}

// meets checks what the page promises of a window of 30 seconds.
func meets(t *testing.T, f figures) {
	t.Helper()
	for i := range f.AfterPeak {
		assert.LessOrEqual(t, f.AfterPeak[i], 2*f.Rest)
		assert.LessOrEqual(t, f.AfterSeconds[i], 10.0)
	}
}

// realFleet is a fleet of real keepers.
type realFleet struct {
	t       *testing.T
	plan    plan
	store   *store
	memory  *storetest.Memory
	begin   time.Time
	mu      sync.Mutex // guards the store and the keepers
	keepers []*lease.Keeper
	work    sync.WaitGroup
}

func newReal(t *testing.T, p plan, s *store) *realFleet {
	return &realFleet{t: t, plan: p, store: s, memory: storetest.NewMemory(), begin: time.Now(), keepers: make([]*lease.Keeper, p.processes())}
}

func (r *realFleet) now() int64 { return int64(time.Since(r.begin)) }

func (r *realFleet) start(i int32, _ int64) {
	layout := snowflake.Layout{Epoch: r.begin.AddDate(-1, 0, 0), Tick: time.Duration(tick), TimeBits: 38, NodeBits: 10, SequenceBits: 8}
	r.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		client := &realClient{r: r, i: i}
		k, err := lease.Claim(ctx, client, lease.WithLayout(layout), lease.WithWindow(r.plan.window),
			lease.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if !assert.NoError(r.t, err) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keepers[i] = k
		r.store.meter.claim(int(i), r.now(), client.trips)
	})
}

func (r *realFleet) stop(i int32, _ int64) {
	r.mu.Lock()
	k := r.keepers[i]
	r.keepers[i] = nil
	r.mu.Unlock()
	if k != nil {
		r.work.Go(func() { _ = k.Close() })
	}
}

func (r *realFleet) run(end int64) {
	time.Sleep(time.Duration(end - r.now()))
	synctest.Wait()
}

func (r *realFleet) end() {
	for i := range r.keepers {
		r.stop(int32(i), 0)
	}
	r.work.Wait()
}

// realClient is the way of one real keeper to the store.
type realClient struct {
	r     *realFleet
	i     int32
	trips int32
}

// request sends a request, whose effect takes place at once if the store serves it, and waits for
// its end.
func (c *realClient) request(ctx context.Context, cells int64, effect func(back int64)) error {
	c.r.mu.Lock()
	c.trips++
	now := c.r.now()
	back, served := c.r.store.admit(now, cells)
	if served {
		effect(back)
	}
	c.r.mu.Unlock()
	select {
	case <-time.After(time.Duration(back - now)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if !served {
		return storetest.ErrFault
	}
	return nil
}

func (c *realClient) List(ctx context.Context, from, to string, limit int) (cells []stores.Cell, err error) {
	var failed error
	err = c.request(ctx, int64(limit), func(int64) { cells, failed = c.r.memory.List(ctx, from, to, limit) })
	if err != nil {
		return nil, err
	}
	return cells, failed
}

func (c *realClient) Read(ctx context.Context, key string) (cell stores.Cell, err error) {
	var failed error
	err = c.request(ctx, 0, func(int64) { cell, failed = c.r.memory.Read(ctx, key) })
	if err != nil {
		return stores.Cell{}, err
	}
	return cell, failed
}

func (c *realClient) Swap(ctx context.Context, key string, version uint64, value []byte) (next uint64, err error) {
	var failed error
	err = c.request(ctx, 0, func(back int64) {
		if next, failed = c.r.memory.Swap(ctx, key, version, value); failed == nil && key != "layout" {
			c.r.store.meter.wrote(int(c.i), c.r.now(), back)
		}
	})
	if err != nil {
		return 0, err
	}
	return next, failed
}

func (c *realClient) Close() error { return nil }

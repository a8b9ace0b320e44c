package scale

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

const tick = int64(10 * time.Millisecond)

var full = flag.Bool("scale.full", false, "run every fleet of the page through all that happens, not the first until its first outage")

// TestScale holds fleets against the promises of the page, and prints their columns.
func TestScale(t *testing.T) {
	for i, p := range plans {
		if i > 0 && !*full {
			break
		}
		p.brief = !*full
		var f figures
		synctest.Test(t, func(t *testing.T) {
			s := newStore(p.seed, p.capacity(), p.processes(), p.outages())
			d := newFleet(t, p, s)
			f = carryOut(p, s, d)
			d.end()
		})
		for row, value := range column(p, f) {
			t.Logf("%s: %s", rows[row], value)
		}
		assert.InEpsilon(t, p.rest(), f.Rest, 0.02)
		assert.LessOrEqual(t, f.Start, 40.0)
		assert.LessOrEqual(t, f.Trips, int32(6))
		for i := range f.AfterPeak {
			assert.LessOrEqual(t, f.AfterSeconds[i], 10.0)
			if p.window <= time.Minute {
				assert.LessOrEqual(t, f.AfterPeak[i], 2*f.Rest)
			}
		}
	}
}

// fleet is a fleet of real keepers.
type fleet struct {
	t       *testing.T
	plan    plan
	store   *store
	memory  *storetest.Memory
	begin   time.Time
	mu      sync.Mutex // guards the store and the keepers
	keepers []*lease.Keeper
	work    sync.WaitGroup
}

func newFleet(t *testing.T, p plan, s *store) *fleet {
	return &fleet{t: t, plan: p, store: s, memory: storetest.NewMemory(), begin: time.Now(), keepers: make([]*lease.Keeper, p.processes())}
}

func (r *fleet) now() int64 { return int64(time.Since(r.begin)) }

func (r *fleet) start(i int32) {
	layout := snowflake.Layout{Epoch: r.begin.AddDate(-1, 0, 0), Tick: time.Duration(tick), TimeBits: 38, NodeBits: 10, SequenceBits: 8}
	r.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		c := &client{r: r, i: i}
		k, err := lease.Claim(ctx, c, lease.WithLayout(layout), lease.WithWindow(r.plan.window),
			lease.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if !assert.NoError(r.t, err) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keepers[i] = k
		r.store.meter.claim(int(i), r.now(), c.trips)
	})
}

func (r *fleet) stop(i int32) {
	r.mu.Lock()
	k := r.keepers[i]
	r.keepers[i] = nil
	r.mu.Unlock()
	if k != nil {
		r.work.Go(func() { _ = k.Close() })
	}
}

func (r *fleet) run(end int64) {
	time.Sleep(time.Duration(end - r.now()))
	synctest.Wait()
}

func (r *fleet) end() {
	for i := range r.keepers {
		r.stop(int32(i))
	}
	r.work.Wait()
}

// client is the way of one keeper to the store.
type client struct {
	r     *fleet
	i     int32
	trips int32
}

// request sends a request, whose effect takes place at once if the store serves it, and waits for
// its end.
func (c *client) request(ctx context.Context, cells int64, effect func(back int64)) error {
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

func (c *client) List(ctx context.Context, from, to string, limit int) (cells []stores.Cell, err error) {
	var failed error
	err = c.request(ctx, int64(limit), func(int64) { cells, failed = c.r.memory.List(ctx, from, to, limit) })
	if err != nil {
		return nil, err
	}
	return cells, failed
}

func (c *client) Read(ctx context.Context, key string) (cell stores.Cell, err error) {
	var failed error
	err = c.request(ctx, 0, func(int64) { cell, failed = c.r.memory.Read(ctx, key) })
	if err != nil {
		return stores.Cell{}, err
	}
	return cell, failed
}

func (c *client) Swap(ctx context.Context, key string, version uint64, value []byte) (next uint64, err error) {
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

func (c *client) Close() error { return nil }

package generator_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// pastNow is when old rows are given IDs.
var pastNow = clockFunc(func() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) })

func ms(n int64) time.Time { return time.UnixMilli(n) }

// pastStore is a store with the past numbers 6 and 7, of the layout.
func pastStore(t *testing.T, l snowflake.Layout, p lease.Past) *storetest.Memory {
	t.Helper()
	m := storetest.NewMemory()
	p.From, p.To = 6, 7
	require.NoError(t, lease.GivePast(t.Context(), m.Client(), p, lease.WithLayout(l), lease.WithClock(pastNow)))
	return m
}

func openPast(t *testing.T, s stores.Store, opts ...generator.Option) *generator.Past {
	t.Helper()
	stores.Register("pasttest", func(context.Context, string) (stores.Store, error) { return s, nil })
	p, err := generator.OpenPast(t.Context(), "pasttest://", append([]generator.Option{generator.WithClock(pastNow)}, opts...)...)
	require.NoError(t, err)
	return p
}

// TestPast: processes that crash, over a store that loses requests and answers, and takes writes late, issue no ID
// twice, and each of its row's time, though an epoch is no multiple of anything.
func TestPast(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for seed := range uint64(30) {
			oldRows(t, seed)
		}
	})
}

func oldRows(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 55))
	l := snowflake.Layout{
		Epoch: time.Date(2026, 1, 1, 0, 0, 0, rng.IntN(1e9), time.UTC), Tick: time.Duration(1+rng.IntN(3)) * 5 * time.Millisecond,
		TimeBits: 40, NodeBits: 3, SequenceBits: 3, Order: snowflake.Order(rng.IntN(2)),
	}
	unit := time.Duration(rng.IntN(4)) * 25 * time.Millisecond
	m := pastStore(t, l, lease.Past{Bucket: time.Duration(1+rng.IntN(30)) * l.Tick, Lane: 1 << rng.IntN(4)})
	faults := false
	client := func() *storetest.Memory {
		c := m.Client()
		c.Before = func(context.Context, storetest.Op) storetest.Fault {
			for i := range m.Late() {
				if rng.IntN(4) == 0 {
					m.Deliver(i)
					break
				}
			}
			if !faults || rng.IntN(4) > 0 {
				return storetest.None
			}
			return storetest.Fault(rng.IntN(4))
		}
		return c
	}
	open := func() *generator.Past {
		faults = false
		defer func() { faults = true }()
		return openPast(t, client(), generator.WithPastUnit(unit), generator.WithPastMemory(16*(64*(1+rng.IntN(4))+rng.IntN(50))))
	}
	processes := []*generator.Past{open(), open(), open()}
	seen, full := map[snowflake.ID]bool{}, 0
	for range 400 {
		i := rng.IntN(len(processes))
		switch rng.IntN(40) {
		case 0:
			processes[i] = open() // the one before has crashed
		case 1:
			processes[i].Restored()
		}
		at := l.Epoch.Add(time.Duration(rng.IntN(400)) * time.Millisecond)
		id, err := processes[i].At(t.Context(), at)
		if err != nil {
			if errors.Is(err, generator.ErrPastFull) {
				full++
			} else {
				require.ErrorIs(t, err, lease.ErrStore, "seed %d", seed)
			}
			continue
		}
		require.False(t, seen[id], "seed %d: %d was issued twice", seed, id)
		seen[id] = true
		d, err := l.Decode(id)
		require.NoError(t, err)
		step := max(unit/l.Tick, 1) * l.Tick
		require.WithinDuration(t, at, d.Time, step+l.Tick, "seed %d", seed)
		require.Contains(t, []int64{6, 7}, d.Node)
	}
	require.NotEmpty(t, seen)
}

// TestPastWrites: one write for each bucket, in whatever order, and one more for a bucket that was forgotten.
func TestPastWrites(t *testing.T) {
	m := pastStore(t, snowflake.Default(), lease.Past{})
	writes, rows := 0, rand.New(rand.NewPCG(1, 2))
	client := m.Client()
	client.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpSwap {
			writes++
		}
		return storetest.None
	}
	p := openPast(t, client, generator.WithPastUnit(time.Second))
	row := func() time.Time {
		return snowflake.Default().Epoch.Add(time.Duration(rows.IntN(30*86400)) * time.Second)
	}
	for range 20_000 {
		id, err := p.At(t.Context(), row())
		require.NoError(t, err)
		require.EqualValues(t, 6, must(snowflake.Default().Decode(id)).Node)
	}
	assert.Equal(t, 30, writes)
	assert.Equal(t, generator.PastStats{Buckets: 30, Lanes: 30, IDs: 20_000}, p.Stats())

	p = openPast(t, m.Client(), generator.WithPastMemory(16*(2*64+100)))
	for day := range 200 {
		_, err := p.At(t.Context(), snowflake.Default().Epoch.AddDate(0, 0, day%2).Add(time.Duration(day)*time.Second))
		require.NoError(t, err)
	}
	assert.Equal(t, generator.PastStats{Buckets: 4, Lanes: 4, IDs: 200}, p.Stats())
	p.Restored()
	_, err := p.At(t.Context(), snowflake.Default().Epoch.AddDate(0, 0, 1))
	require.NoError(t, err)
	assert.EqualValues(t, 5, p.Stats().Lanes, "the other is its original's")
}

// TestPastTogether: a thousand rows of one second need one lane of sixteen in each process, whose callers issue at once.
func TestPastTogether(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := pastStore(t, snowflake.Default(), lease.Past{})
		m.Before = func(context.Context, storetest.Op) storetest.Fault {
			time.Sleep(time.Millisecond) // all others come to wait for the lane
			return storetest.None
		}
		var seen sync.Map
		var all sync.WaitGroup
		old := []*generator.Past{openPast(t, m, generator.WithPastUnit(time.Second)), openPast(t, m, generator.WithPastUnit(time.Second))}
		for i := range 8 {
			all.Go(func() {
				for range 4000 {
					id, err := old[i%2].At(t.Context(), ms(1741083630_000))
					_, twice := seen.LoadOrStore(id, true)
					if err != nil || twice {
						t.Errorf("%d, twice: %t, %v", id, twice, err)
						return
					}
				}
			})
		}
		all.Wait()
		for _, p := range old {
			assert.Equal(t, generator.PastStats{Buckets: 1, Lanes: 1, IDs: 16_000}, p.Stats())
		}
	})
}

// TestPastEnds: a call that waits for the store ends with its context, also one that waits for its turn, and soon after
// a Close.
func TestPastEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		client := pastStore(t, snowflake.Default(), lease.Past{}).Client()
		p := openPast(t, client)
		client.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
			<-ctx.Done()
			return storetest.None
		}
		at := func(ctx context.Context) chan error {
			failed := make(chan error, 1)
			go func() {
				_, err := p.At(ctx, pastNow())
				failed <- err
			}()
			synctest.Wait()
			return failed
		}
		bounded, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		canceled, cancel := context.WithCancel(bounded)
		first, waits, began := at(bounded), at(canceled), time.Now()
		cancel()
		require.ErrorIs(t, <-waits, context.Canceled)
		require.ErrorIs(t, <-at(t.Context()), lease.ErrStore, "without a deadline it fails at once")
		require.NoError(t, p.Close())
		require.ErrorIs(t, <-first, generator.ErrClosed)
		require.Less(t, time.Since(began), time.Minute)
	})
}

func TestPastErrors(t *testing.T) {
	l := narrow()
	l.NodeBits, l.SequenceBits = 3, 2
	m := pastStore(t, l, lease.Past{Lane: 2})
	now := pastNow()
	a, b := openPast(t, m.Client()), openPast(t, m.Client())
	fails := func(p *generator.Past, at time.Time, target error, text string) {
		t.Helper()
		_, err := p.At(t.Context(), at)
		require.ErrorIs(t, err, target)
		require.ErrorContains(t, err, text)
	}
	fails(a, now.Add(1), generator.ErrNotPast, "2026-06-01T00:00:00.000000001Z is after now, 2026-06-01T00:00:00Z")
	fails(a, l.Epoch.Add(-1), generator.ErrNotPast, "is before the epoch, "+l.Epoch.Format(time.RFC3339Nano))
	at := l.Epoch.Add(time.Second)
	for range 8 {
		_, err := a.At(t.Context(), at)
		require.NoError(t, err)
	}
	fails(a, at, generator.ErrPastFull, "the tick is full, all 8 IDs of 2 past node numbers are issued")
	fails(b, at.Add(time.Second), generator.ErrPastFull, "all 4 lanes of 2 past node numbers in the bucket of 24h0m0s from "+l.Epoch.Format(time.RFC3339)+" on are drawn, 0 by this process, each of 2 IDs of a tick")
	_, err := a.At(t.Context(), at.Add(time.Second))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	fails(a, at, generator.ErrClosed, "old rows")

	for option, opt := range map[string]generator.Option{
		"WithNode": generator.WithNode(1), "WithPastUnit": generator.WithPastUnit(-1), "WithPastMemory": generator.WithPastMemory(-1), "WithClock": generator.WithClock(nil),
		"WithFloor": generator.WithFloor(1), "WithLease": generator.WithLease(nil), "WithLeaseOptions": generator.WithLeaseOptions(lease.WithWindow(time.Hour)),
	} {
		_, err := generator.OpenPast(t.Context(), "pasttest://", opt)
		refused, ok := errors.AsType[*stores.OptionError](err)
		require.True(t, ok, option)
		require.Equal(t, option, refused.Option)
	}
	_, err = generator.New(generator.WithNode(1), generator.WithPastUnit(time.Second))
	require.ErrorContains(t, err, "WithPastUnit")
	_, err = generator.OpenPast(t.Context(), "pasttest://", generator.WithLayout(snowflake.Twitter()))
	require.ErrorAs(t, err, new(*lease.LayoutMismatchError))
	empty := storetest.NewMemory()
	stores.Register("pasttest", func(context.Context, string) (stores.Store, error) { return empty.Client(), nil })
	_, err = generator.OpenPast(t.Context(), "pasttest://")
	require.ErrorIs(t, err, lease.ErrNeverClaimed)
	require.NoError(t, lease.SetFleet(t.Context(), empty.Client(), lease.Fleet{From: 0, To: 3}))
	_, err = generator.OpenPast(t.Context(), "pasttest://")
	require.ErrorIs(t, err, generator.ErrNoPast)
}

// TestPastWentBack: a process that knows a lane which the store has lost issues nothing more of its bucket, and
// says what to do.
func TestPastWentBack(t *testing.T) {
	l := narrow()
	l.NodeBits, l.SequenceBits = 3, 2
	m := pastStore(t, l, lease.Past{Lane: 1})
	p := openPast(t, m.Client())
	at := l.Epoch.Add(time.Second)
	for range 3 {
		_, err := p.At(t.Context(), at)
		require.NoError(t, err)
	}
	restore := m.Snapshot()
	_, err := p.At(t.Context(), at)
	require.NoError(t, err)
	restore()
	for range 3 {
		_, err = p.At(t.Context(), at)
		if err != nil && !errors.Is(err, stores.ErrWentBack) {
			require.NoError(t, err)
		}
	}
	require.ErrorIs(t, err, stores.ErrWentBack)
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

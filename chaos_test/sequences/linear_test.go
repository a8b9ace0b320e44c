package sequences

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// issuer takes numbers: a Sequence, or one that is broken.
type issuer interface {
	NextN(ctx context.Context, n int64) (first int64, err error)
	Close() error
}

// sequenceOf opens a sequence of a mode.
func sequenceOf(mode sequence.Mode) func(context.Context, stores.Store) (issuer, error) {
	return func(ctx context.Context, store stores.Store) (issuer, error) {
		return sequence.Open(ctx, store, "orders", sequence.WithTimeout(40*time.Millisecond), sequence.WithLogger(slog.New(slog.DiscardHandler)),
			sequence.WithDefinition(sequence.Definition{Mode: mode, Start: 1, MinStep: 4, MaxStep: 16}))
	}
}

// The calls of three processes of an ordered sequence are linearizable, on a store that is
// slow, fails, loses answers and gets writes late, while processes crash and calls are given
// up.
func TestOrderedIsLinearizable(t *testing.T) {
	t.Parallel()
	calls := 0
	for seed := range uint64(200) {
		w := simulate(t, seed, sequenceOf(sequence.Ordered))
		w.history.issued(t)
		calls += len(w.history.calls)
		require.True(t, w.history.linearizable(), "seed %d", seed)
	}
	t.Logf("%d calls returned a number", calls)
	assert.Greater(t, calls, 200*60)
}

// A sound issuer of a few lines passes, so the check asks for nothing impossible. It fails
// where calls ride on a write that was sent before they began (mutant S5), and where
// processes take segments.
func TestOrderIsMissed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open  func(context.Context, stores.Store) (issuer, error)
		sound bool
	}{
		"sound":                {func(_ context.Context, s stores.Store) (issuer, error) { return &shared{store: s}, nil }, true},
		"rides on a write, S5": {func(_ context.Context, s stores.Store) (issuer, error) { return &shared{store: s, rides: true}, nil }, false},
		"segmented":            {sequenceOf(sequence.Segmented), false},
	} {
		t.Run(name, func(t *testing.T) {
			missed, calls := 0, 0
			for seed := range uint64(20) {
				w := simulate(t, seed, c.open)
				w.history.issued(t)
				calls += len(w.history.calls)
				if !w.history.linearizable() {
					missed++
				}
			}
			t.Logf("the order was missed in %d of 20 runs with %d calls", missed, calls)
			assert.Equal(t, c.sound, missed == 0)
		})
	}
}

// world is a run of three processes in virtual time.
type world struct {
	history history
	memory  *storetest.Memory
	open    func(context.Context, stores.Store) (issuer, error)
	ticks   atomic.Int64 // the clock of the history

	mu     sync.Mutex
	random *rand.Rand
}

// chance returns a number from 0 up to n.
func (w *world) chance(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// pause lets up to d of virtual time pass.
func (w *world) pause(d time.Duration) { time.Sleep(time.Duration(w.chance(int(d)))) }

func simulate(t *testing.T, seed uint64, open func(context.Context, stores.Store) (issuer, error)) *world {
	w := &world{memory: storetest.NewMemory(), open: open, random: rand.New(rand.NewPCG(seed, 15))}
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		var living, delivering sync.WaitGroup
		for p := range 3 {
			living.Go(func() {
				for range 2 {
					w.live(p)
				}
			})
		}
		delivering.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Duration(w.chance(int(10 * time.Millisecond)))):
				}
				if late := len(w.memory.Late()); late > 0 && w.chance(2) == 0 {
					w.memory.Deliver(w.chance(late))
				}
			}
		})
		living.Wait()
		close(done)
		delivering.Wait()
	})
	return w
}

// live is one process until its crash, or until its callers have made their calls.
func (w *world) live(process int) {
	var dead atomic.Bool
	client := w.memory.Client()
	client.Before = func(context.Context, storetest.Op) storetest.Fault {
		w.pause(3 * time.Millisecond)
		if dead.Load() {
			return storetest.Unavailable
		}
		return map[int]storetest.Fault{0: storetest.Unavailable, 1: storetest.Delayed, 2: storetest.ReplyLost, 3: storetest.ReplyLost, 4: storetest.ReplyLost}[w.chance(30)]
	}
	client.After = func(context.Context, storetest.Op) {
		if w.chance(5) == 0 {
			w.pause(60 * time.Millisecond) // others write meanwhile, and their calls return
		}
		w.pause(3 * time.Millisecond)
	}
	q, err := w.open(context.Background(), client)
	for err != nil {
		q, err = w.open(context.Background(), client)
	}
	crash := -1
	if w.chance(2) == 0 {
		crash = w.chance(40)
	}
	var made atomic.Int64
	var calling sync.WaitGroup
	for range 4 {
		calling.Go(func() {
			for range 10 {
				if made.Add(1) == int64(crash) {
					dead.Store(true)
				}
				if dead.Load() {
					return
				}
				if w.chance(3) == 0 {
					w.pause(60 * time.Millisecond) // it begins while a write is out
				}
				w.pause(3 * time.Millisecond)
				w.call(process, q, &dead)
			}
		})
	}
	calling.Wait()
	_ = q.Close() // fails if the process has crashed, or the store
}

func (w *world) call(process int, q issuer, dead *atomic.Bool) {
	timeout := time.Second
	if w.chance(3) == 0 {
		timeout = time.Duration(w.chance(int(40 * time.Millisecond))) // it may end while its write is out
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	n := int64(1 + w.chance(3))
	begin := w.ticks.Add(1)
	first, err := q.NextN(ctx, n)
	end := w.ticks.Add(1)
	if err == nil && !dead.Load() {
		w.history.add(call{process: process, first: first, n: n, begin: begin, end: end})
	}
}

// shared is an issuer whose calls share writes. A write takes more numbers than its calls
// need. One that rides lets a call take the rest of a write that was sent before it began.
type shared struct {
	store stores.Store
	rides bool

	mu    sync.Mutex
	write *write // the one that is sent next, or that is out
}

// write is one write and its calls.
type write struct {
	sent       bool
	done       chan struct{} // closed when it has returned
	next, last int64
	err        error
}

func (s *shared) Close() error { return nil }

func (s *shared) NextN(ctx context.Context, n int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		w := s.write
		switch {
		case w == nil:
			w = &write{done: make(chan struct{})}
			s.write = w
			go s.send(w)
		case w.sent && !s.rides:
			s.mu.Unlock()
			<-w.done
			s.mu.Lock()
			continue
		}
		s.mu.Unlock()
		<-w.done
		s.mu.Lock()
		if w.err != nil {
			return 0, w.err
		}
		if first := w.next; w.last-first+1 >= n {
			w.next += n
			return first, ctx.Err()
		}
	}
}

// send waits a moment for more calls, and reserves 16 numbers.
func (s *shared) send(w *write) {
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	w.sent = true
	s.mu.Unlock()
	high, err := s.reserve(16)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.next, w.last, w.err = high-15, high, err
	s.write = nil
	close(w.done)
}

// reserve raises the counter in the store, and returns it. After an unknown outcome its
// numbers are given up.
func (s *shared) reserve(n int64) (high int64, err error) {
	const key = "counter"
	cell, err := s.store.Read(context.Background(), key)
	if err != nil {
		return 0, err
	}
	if cell.Version > 0 {
		if _, err := fmt.Sscan(string(cell.Value), &high); err != nil {
			return 0, err
		}
	}
	_, err = s.store.Swap(context.Background(), key, cell.Version, fmt.Append(nil, high+n))
	return high + n, err
}

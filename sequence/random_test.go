package sequence_test

import (
	"context"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"runtime"
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

var worlds = flag.Int("worlds", 200, "how many worlds TestAtRandom makes")

// TestAtRandom has processes share a sequence while all goes wrong that their store can do but to go back: an operation
// takes its time, fails, hangs, shows an older state. Calls are given up, and the sequence is changed. What can become of one write is explored in internal/count: this drives what stands around it.
//
// No number comes twice, and the numbers are in order: in ordered mode that of all processes, and else that of each. Once the
// faults have ended, all are served. At last each number was issued, or is counted as lost.
func TestAtRandom(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the same seed is mostly the same world
	for seed := range *worlds {
		synctest.Test(t, func(t *testing.T) { newWorld(t, uint64(seed)).run() })
		require.False(t, t.Failed(), "world %d; with -worlds=%d it comes last, and is mostly the same", seed, seed+1)
	}
}

type world struct {
	*testing.T
	store      *storetest.Memory
	definition sequence.Definition
	rough      bool // processes end amid the faults, die, and are told that their memory was restored
	lossy      bool // writes take effect that are not answered, at once or later

	mu      sync.Mutex // guards the rest
	rng     *rand.Rand
	calm    bool // no operation fails any more
	cells   []stores.Cell
	latest  int64 // that a call of any process has returned
	issued  map[int64]bool
	counted int64  // issued, lost, or skipped by a Set
	unknown bool   // how many are lost
	cancel  func() // ends the call that began last, if it has a context of its own
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, store: storetest.NewMemory(), rng: rand.New(rand.NewPCG(seed, 0)), issued: map[int64]bool{}, cancel: func() {}}
	w.definition = sequence.Definition{Mode: bothModes[w.n(2)], MinStep: 1 + int64(w.n(8))}
	w.definition.MaxStep = w.definition.MinStep << w.n(4)
	w.rough, w.lossy = w.n(2) == 0, w.n(2) == 0
	return w
}

// n draws a number below n.
func (w *world) n(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// sleep lets whole milliseconds pass, so that much happens at once.
func (w *world) sleep(most int) { time.Sleep(time.Duration(w.n(most)) * time.Millisecond) }

func (w *world) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

func (w *world) run() {
	var processes, others sync.WaitGroup
	open(w, w.store, w.definition)
	for range 1 + w.n(4) {
		processes.Go(w.process)
	}
	others.Go(w.operate)
	others.Go(func() {
		for !w.isCalm() {
			w.sleep(100)
			w.store.Deliver(w.n(1 + len(w.store.Late())))
		}
	})
	time.Sleep(5 * time.Second)
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	others.Wait()
	require.NoError(w, set(w, w.store, sequence.Change{Max: math.MaxInt64}))
	processes.Wait()
	if !w.unknown {
		assert.Equal(w, inspect(w, w.store).Last, w.counted)
	}
}

// operate changes the sequence.
func (w *world) operate() {
	client := w.store.Client()
	for !w.isCalm() {
		w.sleep(1000)
		var c sequence.Change
		switch now := inspect(w, client); w.n(3) {
		case 0:
			c.Next = now.Next + int64(w.n(20))
		case 1:
			c.Max = now.Last + int64(w.n(100))
		case 2:
			c.MinStep = 1 + int64(w.n(8))
			c.MaxStep = c.MinStep << w.n(4)
		}
		before, after, err := sequence.Set(w.Context(), client, "orders", c)
		w.mu.Lock()
		if err == nil && c.Next > 0 {
			w.counted += after.Next - before.Next
		}
		w.mu.Unlock()
	}
}

// process is one after the other that share nothing, or, unless it is rough, a single one.
func (w *world) process() {
	for lives := 1 + w.n(3); lives > 0; lives-- {
		w.sleep(1000)
		client := &faulting{Memory: w.store.Client(), w: w}
		client.Before, client.After = client.before, client.after
		s, err := sequence.Open(w.Context(), client, "orders", quiet, sequence.WithTimeout(time.Second), sequence.WithOutage(time.Duration(w.n(3))*time.Second))
		if err != nil {
			w.expect(err)
			continue
		}
		var calls sync.WaitGroup
		l := &member{world: w, Sequence: s}
		for range 1 + w.n(3) {
			calls.Go(func() {
				for range w.n(30) {
					l.call()
					w.sleep(200)
				}
			})
		}
		ends := w.rough && w.n(2) == 0
		if w.rough {
			w.sleep(2000)
			if w.n(2) == 0 {
				l.restored()
			}
			if w.n(3) == 0 {
				client.dead.Store(true)
			}
		}
		for !ends && !w.isCalm() {
			time.Sleep(time.Second)
		}
		if !ends {
			calls.Wait()
			time.Sleep(2 * time.Second) // after a failure, the next try waits
			if !client.dead.Load() {
				assert.NoError(w, second(s.Next(w.Context())), "it is served")
				l.numbers++
			}
		}
		err = s.Close()
		calls.Wait()
		stats := s.Stats()
		assert.Equal(w, l.numbers, stats.Issued)
		w.mu.Lock()
		w.counted += int64(stats.Issued + stats.Lost)
		w.unknown = w.unknown || w.lossy || err != nil
		w.mu.Unlock()
	}
}

// faulting is the store of one process.
type faulting struct {
	*storetest.Memory
	w    *world
	dead atomic.Bool // the process is
}

func (f *faulting) before(ctx context.Context, _ storetest.Op) storetest.Fault {
	f.w.sleep(20)
	switch fault := f.w.n(16); {
	case f.dead.Load():
		return storetest.Unavailable
	case f.w.isCalm():
	case fault == 0:
		<-ctx.Done()
	case fault == 1:
		return storetest.Unavailable
	case f.w.lossy && fault < 4:
		return []storetest.Fault{2: storetest.ReplyLost, 3: storetest.Delayed}[fault]
	}
	return storetest.None
}

// after sometimes ends a call just when it is served.
func (f *faulting) after(context.Context, storetest.Op) {
	f.w.sleep(20)
	if f.w.n(4) == 0 {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		f.w.cancel()
	}
}

// Read sometimes returns what an earlier one of any process has returned.
func (f *faulting) Read(ctx context.Context, key string) (stores.Cell, error) {
	c, err := f.Memory.Read(ctx, key)
	if old := f.w.n(8) == 0; err == nil {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		if f.w.cells = append(f.w.cells, c); old && !f.w.calm {
			c = f.w.cells[f.w.rng.IntN(len(f.w.cells))]
		}
	}
	return c, err
}

// member is a Sequence from its Open to its Close.
type member struct {
	*world
	*sequence.Sequence
	numbers uint64 // that its calls have returned
	latest  int64
}

// latestOf is the number above which each call returns its own.
func (l *member) latestOf() *int64 {
	if l.definition.Mode == ordered {
		return &l.world.latest
	}
	return &l.latest
}

func (l *member) call() {
	ctx, end, n := l.Context(), func() {}, int64(1)
	if l.n(4) == 0 {
		n += int64(l.n(20))
	}
	if l.n(2) == 0 {
		short, cancel := context.WithTimeout(ctx, time.Duration(l.n(500))*time.Millisecond)
		defer cancel()
		ctx, end = short, cancel
	}
	l.mu.Lock()
	l.cancel = end
	before := *l.latestOf()
	l.mu.Unlock()
	first, err := l.NextN(ctx, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.expect(err)
		return
	}
	assert.Greater(l, first, before)
	for number := first; number < first+n; number++ {
		assert.False(l, l.issued[number], "%d comes twice", number)
		l.issued[number] = true
	}
	l.numbers += uint64(n)
	*l.latestOf() = max(*l.latestOf(), first+n-1)
}

func (l *member) restored() {
	ctx, cancel := context.WithTimeout(l.Context(), time.Second)
	defer cancel()
	if err := l.Restored(ctx); err != nil {
		l.expect(err)
	}
}

// expect checks that an error is one that the faults can cause.
func (w *world) expect(err error) {
	for _, expected := range []error{sequence.ErrStore, sequence.ErrTimeout, sequence.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, expected) {
			return
		}
	}
	assert.ErrorAs(w, err, new(*sequence.ExhaustedError))
}

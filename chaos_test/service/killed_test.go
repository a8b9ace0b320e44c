//go:build unix

package service

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/client"
)

var kills = flag.Int("service.kills", fewer(20), "kill the server so many times")

// fewer returns n, or a quarter of it in a program with the race detector, which is slow.
func fewer(n int) int {
	if raceDetector {
		return n / 4
	}
	return n
}

// patience bounds a call: the machine may be busy.
const patience = 30 * time.Second

// worker calls until done is closed, and keeps what it gets. Calls may fail, and are repeated
// after a moment.
type worker struct {
	name   string
	ledger *ledger
	served atomic.Int64 // calls
	failed atomic.Int64
}

// run takes IDs, then a number of each sequence, in turn.
func (w *worker) run(ctx context.Context, c caller, done <-chan struct{}) {
	defer c.close()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		if err := w.call(ctx, c, i); err != nil {
			w.failed.Add(1)
			select {
			case <-done:
			case <-time.After(2 * time.Millisecond): // the server is being started
			}
			continue
		}
		w.served.Add(1)
	}
}

func (w *worker) call(ctx context.Context, c caller, i int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var name string
	switch i % 4 {
	case 0:
		name = invoices
	case 1:
		name = tickets
	default:
		n := 1
		if i%8 == 3 {
			n = 50
		}
		ids, err := c.ids(ctx, n)
		if err == nil {
			w.ledger.addIDs(ids...)
		}
		return err
	}
	begin := now()
	number, err := c.number(ctx, name)
	if err == nil {
		w.ledger.addNumber(name, taken{number, begin, now()})
	}
	return err
}

// cached is the Go client, as a caller.
type cached struct{ *client.Client }

func (c cached) close() { _ = c.Close() }

func (c cached) ids(ctx context.Context, n int) ([]int64, error) {
	var all []int64
	for range n {
		id, err := c.Next(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, int64(id))
	}
	return all, nil
}

func (c cached) number(ctx context.Context, name string) (int64, error) { return c.Number(ctx, name) }

// openClient opens the Go client. It has as much time for a call as the callers of the other
// protocols: a disk that others use may need more than the default for a write.
func openClient(t testing.TB, servers ...addresses) cached {
	t.Helper()
	var all []string
	for _, s := range servers {
		all = append(all, s.GRPC)
	}
	c, err := client.Open(t.Context(), all, client.WithTimeout(patience))
	require.NoError(t, err)
	return cached{c}
}

// The server is killed with kill -9 under the load of five clients, and started again, many
// times. No ID and no number is issued twice.
func TestKilled(t *testing.T) {
	t.Parallel()
	j := job{addresses: fixed(t), Dir: t.TempDir()}
	p := j.start(t)
	var l ledger
	done := make(chan struct{})
	var working sync.WaitGroup
	var workers []*worker
	work := func(name string, c caller) {
		w := &worker{name: name, ledger: &l}
		workers = append(workers, w)
		working.Go(func() { w.run(t.Context(), c, done) })
	}
	for name, open := range callers {
		work(name, open(j.addresses))
	}
	work("client", openClient(t, j.addresses))
	stop := sync.OnceFunc(func() { close(done); working.Wait() })
	defer stop()
	random := rand.New(rand.NewPCG(1, 2))
	for range *kills {
		for _, w := range workers {
			// Every client works again, and then some.
			require.NoError(t, w.more(t.Context(), int64(1+random.IntN(20))))
		}
		p.kill()
		p = j.start(t)
	}
	for _, w := range workers {
		require.NoError(t, w.more(t.Context(), 1))
	}
	stop()
	var failed int64
	for _, w := range workers {
		t.Logf("%s: %d calls served, %d failed", w.name, w.served.Load(), w.failed.Load())
		failed += w.failed.Load()
	}
	assert.GreaterOrEqual(t, failed, int64(*kills), "the kills have disturbed no call, so the test shows nothing")
	l.check(t, *kills, invoices, tickets)
}

// more waits until so many more calls are served.
func (w *worker) more(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for from := w.served.Load(); w.served.Load() < from+n; {
		select {
		case <-ctx.Done():
			return errors.New(w.name + " is not served any more")
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

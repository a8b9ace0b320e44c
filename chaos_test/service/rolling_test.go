//go:build unix

package service

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var restarts = flag.Int("service.restarts", 2, "restart each of two servers so many times")

// either asks one of two servers, and the other one if that refuses, is away, or closes the
// connection, as a client with two addresses does. When both have failed, it waits for a
// moment, because the connections to a server that was restarted may still be those from
// before.
type either struct {
	both [2]caller
	at   int
}

func (e *either) close() {
	for _, c := range e.both {
		c.close()
	}
}

// turns is how many times each server is asked.
const turns = 3

func (e *either) ask(f func(caller) error) (err error) {
	for i := range turns * len(e.both) {
		if i > 0 && i%len(e.both) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if err = f(e.both[e.at]); err == nil {
			return nil
		}
		e.at = 1 - e.at
	}
	return err
}

func (e *either) ids(ctx context.Context, n int) (ids []int64, err error) {
	err = e.ask(func(c caller) (err error) { ids, err = c.ids(ctx, n); return err })
	return ids, err
}

func (e *either) number(ctx context.Context, name string) (number int64, err error) {
	err = e.ask(func(c caller) (err error) { number, err = c.number(ctx, name); return err })
	return number, err
}

// strict is a worker whose calls may not fail.
func (w *worker) strict(t testing.TB, c caller, done <-chan struct{}) {
	defer c.close()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		if err := w.call(t.Context(), c, i); err != nil {
			w.failed.Add(1)
			t.Errorf("%s: call %d failed: %v", w.name, i, err)
			return
		}
		w.served.Add(1)
	}
}

// Two servers of one store are restarted in turn, under load. The Go client has both; callers
// of the other protocols ask the other server when one refuses or is away. No call fails, no
// request that a server has begun is cut off, no ID and no number is issued twice, and the
// numbers of the ordered sequence are in the order of real time across both servers.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var jobs [2]job
	var running [2]*process
	for i := range jobs {
		jobs[i] = job{addresses: fixed(t), Dir: dir}
		running[i] = jobs[i].start(t)
	}
	workers, stop, l := loadOnBoth(t, jobs[0].addresses, jobs[1].addresses)
	defer stop()
	for range *restarts {
		for i, p := range running {
			for _, w := range workers {
				require.NoError(t, w.more(t.Context(), 20))
			}
			began := time.Now()
			require.NoError(t, p.terminate(), "the server ends without an error")
			t.Logf("drained in %s", time.Since(began).Round(time.Millisecond))
			running[i] = jobs[i].start(t)
		}
	}
	for _, w := range workers {
		require.NoError(t, w.more(t.Context(), 20))
	}
	stop()
	for _, w := range workers {
		t.Logf("%s: %d calls served", w.name, w.served.Load())
		assert.Zero(t, w.failed.Load(), w.name)
	}
	l.check(t, 100, invoices, tickets)
	// A request that is cut off takes a number that no caller sees.
	all := l.numbers[invoices]
	assert.Equal(t, int64(len(all)), all[len(all)-1].number, "a number is missing: a server has cut requests off")
}

// loadOnBoth runs the Go client, and a caller of each other protocol, on two servers.
func loadOnBoth(t *testing.T, first, second addresses) (workers []*worker, stop func(), l *ledger) {
	l = &ledger{}
	done := make(chan struct{})
	var working sync.WaitGroup
	work := func(name string, c caller) {
		w := &worker{name: name, ledger: l}
		workers = append(workers, w)
		working.Go(func() { w.strict(t, c, done) })
	}
	n := 0
	for name, open := range callers {
		work(name, &either{both: [2]caller{open(first), open(second)}, at: n % 2})
		n++
	}
	for i := range 2 {
		work(fmt.Sprintf("client %d", i+1), openClient(t, first, second))
	}
	return workers, sync.OnceFunc(func() { close(done); working.Wait() }), l
}

// One of two servers is killed with kill -9 under load. No call of the Go client fails, nor of
// a caller that asks the other server.
func TestOneOfTwoIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := job{addresses: fixed(t), Dir: dir}, job{addresses: fixed(t), Dir: dir}
	running := one.start(t)
	two.start(t)
	workers, stop, l := loadOnBoth(t, one.addresses, two.addresses)
	defer stop()
	for range 2 {
		for _, w := range workers {
			require.NoError(t, w.more(t.Context(), 20))
		}
		running.kill()
		for _, w := range workers {
			require.NoError(t, w.more(t.Context(), 20), "with one server")
		}
		running = one.start(t)
	}
	stop()
	for _, w := range workers {
		assert.Zero(t, w.failed.Load(), w.name)
	}
	l.check(t, 100, invoices, tickets)
}

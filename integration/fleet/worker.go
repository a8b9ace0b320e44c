//go:build unix

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// epoch is when the times of all ledgers of this program begin.
var epoch = time.Now()

// now is the time in nanoseconds by a clock that is never stepped.
func now() int64 { return int64(time.Since(epoch)) }

// callTimeout bounds a call, unless the fleet is strict.
const callTimeout = 10 * time.Second

// Worker is a client of a fleet. It asks the next server after an error, and another one now
// and then. A call that has failed on all is repeated after a moment.
type Worker struct {
	fleet      *Fleet
	callers    []Caller // of each server, or of all servers
	goroutines int
	operations []operation         // called in turn
	tries      int                 // of a call
	sources    map[[2]int64]string // by server and node number

	at, calls int // the caller that is asked first; of the only goroutine

	mu    sync.Mutex
	count Client
}

const (
	// The servers are asked so many times, and there is a moment between: the network may be
	// back.
	rounds     = 3
	roundPause = 20 * time.Millisecond
	// After so many calls the next server is asked first, so that all have work.
	stay = 20
)

// IDs is the name of the operation that takes IDs. Others have that of their sequence.
const IDs = "IDs"

// operation is what a call asks for.
type operation struct {
	name string
	n    int
}

// operations are those of a client of servers.
var operations = []operation{{IDs, 1}, {Ordered, 1}, {IDs, 50}, {Segmented, 1}, {IDs, 1}, {Ordered, 3}, {IDs, 7}, {Segmented, 20}}

// run calls until ctx ends, at the rate of the fleet: a call that takes longer makes those that
// are due meanwhile fall out. A call does not end with ctx, because an answer that came and was
// not looked at would not be checked.
func (w *Worker) run(ctx context.Context) {
	every := time.Nanosecond
	if w.fleet.Rate > 0 {
		every = time.Duration(float64(w.goroutines) * float64(time.Second) / w.fleet.Rate)
	}
	due := time.NewTicker(every)
	defer due.Stop()
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
		o := w.operations[i%len(w.operations)]
		err := w.call(context.WithoutCancel(ctx), o)
		w.note(o, err)
		if err != nil {
			Pause(ctx, 2*time.Millisecond) // the server is being started
			continue
		}
		i++
	}
}

// note counts a call.
func (w *Worker) note(o operation, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && o.name == IDs:
		w.count.IDs += int64(o.n)
	case err == nil:
		w.count.Numbers += int64(o.n)
	}
	if err == nil {
		w.count.Served++
		return
	}
	class, _ := Class(err)
	w.count.Failed++
	w.count.Errors[class]++
	if w.count.Errors[class] == 1 {
		w.count.Examples[class] = fmt.Sprintf("%s, %s: %v", w.fleet.Since(time.Now()), o.name, err)
	}
	if w.fleet.Strict {
		w.fleet.Break(Known, "a call of %s for %s failed with %v", w.count.Name, o.name, err)
	}
}

// call makes one call, which may ask several servers.
func (w *Worker) call(ctx context.Context, o operation) (err error) {
	timeout := callTimeout
	if w.fleet.Strict {
		timeout = Patience
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if w.goroutines == 1 {
		if w.calls++; w.calls%stay == 0 {
			w.at = (w.at + 1) % len(w.callers)
		}
	}
	for i := range w.tries {
		if i > 0 && i%len(w.callers) == 0 {
			Pause(ctx, roundPause)
		}
		if err = w.ask(ctx, o); err == nil || ctx.Err() != nil {
			return err
		}
		refused, _ := errors.AsType[*Refused](err)
		w.mu.Lock()
		w.count.Again++
		if refused != nil && refused.Busy {
			w.count.Busy++
		}
		w.mu.Unlock()
		if _, allowed := Class(err); !allowed {
			w.fleet.Break(Known, "a call of %s for %s failed with %v", w.count.Name, o.name, err)
		}
		if w.goroutines == 1 {
			w.at = (w.at + 1) % len(w.callers)
		}
	}
	return err
}

// ask asks one server, and notes what it gets.
func (w *Worker) ask(ctx context.Context, o operation) error {
	begin := now()
	if o.name != IDs {
		first, err := w.callers[w.at].Numbers(ctx, o.name, int64(o.n))
		if err == nil {
			w.fleet.Numbers[o.name].Note(Entry{First: first, N: int64(o.n), Begin: begin, End: now(), Source: w.count.Name})
		}
		return err
	}
	ids, err := w.callers[w.at].IDs(ctx, o.n)
	if err != nil {
		return err
	}
	w.fleet.IDs.Add(w.source(ids[0]), begin, now(), ids...)
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			w.fleet.Break(InOrder, "%s got %d after %d in one answer", w.count.Name, ids[i], ids[i-1])
		}
	}
	return nil
}

// source names the origin of IDs that ascend: the client, if that promises it, or a server while
// it has one node number.
func (w *Worker) source(id int64) string {
	if w.goroutines > 1 {
		return w.count.Name
	}
	d, err := snowflake.Default().Decode(snowflake.ID(id))
	if err != nil {
		return fmt.Sprint(w.count.Name, ", ", err)
	}
	key := [2]int64{int64(w.at) + 1, d.Node}
	name, ok := w.sources[key]
	if !ok {
		name = fmt.Sprintf("%s of server %d with node number %d", w.count.Name, key[0], key[1])
		if w.sources == nil {
			w.sources = map[[2]int64]string{}
		}
		w.sources[key] = name
	}
	return name
}

// Count returns what the client has done so far.
func (w *Worker) Count() Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.count
	c.Errors, c.Examples = maps.Clone(c.Errors), maps.Clone(c.Examples)
	return c
}

// More waits until so many more calls of each client are served. Crash is not called meanwhile.
func (f *Fleet) More(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	workers := f.workers()
	want := make([]int64, len(workers))
	for i, w := range workers {
		want[i] = w.served() + n
	}
	for i, w := range workers {
		for w.served() < want[i] {
			Pause(ctx, time.Millisecond)
			if ctx.Err() != nil {
				return fmt.Errorf("%s is not served any more: %w; errors: %v; broken: %v", w.count.Name, ctx.Err(), w.Count().Examples, f.Broken())
			}
		}
	}
	return nil
}

func (w *Worker) served() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count.Served
}

// Client is the result of one client.
type Client struct {
	Name     string
	Served   int64 // calls
	Failed   int64 // calls
	Again    int64 // requests that failed, of any call
	Busy     int64 // those of them that a strategy or a rate has rejected
	IDs      int64
	Numbers  int64
	Errors   map[string]int64  // failed calls by their errors
	Examples map[string]string // the first error of each kind
}

//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// callTimeout bounds a call.
const callTimeout = 10 * time.Second

// worker is a client that calls at its rate, and checks the answers.
type worker struct {
	caller
	number int // of the client, from 1
	name   string
	fleet  *fleet

	mu     sync.Mutex // of all below
	count  Client
	source string
	last   int64 // the largest ID that a call has returned, of this source
}

// operation is what a call asks for.
type operation struct {
	name string // "IDs" or a sequence
	n    int
}

// operations are called in turn.
var operations = []operation{{"IDs", 1}, {ordered, 1}, {"IDs", 50}, {segmented, 1}, {"IDs", 1}, {ordered, 3}, {"IDs", 7}, {segmented, 20}}

// run calls every so often until ctx ends. A call that failed is repeated. A call that takes
// longer makes those that are due meanwhile fall out.
func (w *worker) run(ctx context.Context, every time.Duration) {
	due := time.NewTicker(every)
	defer due.Stop()
	var waiting time.Time // since when the operation is not served
	for i := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
		if waiting.IsZero() {
			waiting = time.Now()
		}
		o := operations[i%len(operations)]
		err := w.call(o)
		now := time.Now()
		w.mu.Lock()
		w.count.stalled(o.name, now.Sub(waiting), w.fleet.since(waiting))
		if err != nil {
			class, allowed := w.class(err)
			w.count.Failed++
			w.count.Errors[class]++
			if w.count.Errors[class] == 1 {
				w.count.Examples[class] = fmt.Sprintf("%s, %s: %v", w.fleet.since(now).Round(time.Second), o.name, err)
			}
			w.mu.Unlock()
			if !allowed {
				w.fleet.breaks(known, 1, "a call of client %d (%s) for %s failed with %v", w.number, w.name, o.name, err)
			}
			continue
		}
		w.count.Served++
		w.mu.Unlock()
		waiting = time.Time{}
		i++
	}
}

// call makes one call. It does not end with the soak, because an answer that came and was not
// looked at would not be checked.
func (w *worker) call(o operation) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if o.name == "IDs" {
		return w.takeIDs(ctx, o.n)
	}
	return w.takeNumbers(ctx, o.name, int64(o.n))
}

func (w *worker) takeIDs(ctx context.Context, n int) error {
	w.mu.Lock()
	source, last := w.source, w.last
	w.mu.Unlock()
	ids, from, err := w.ids(ctx, n)
	if err != nil {
		return err
	}
	w.fleet.ids.add(w.number, w.fleet.since(time.Now()), ids...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.IDs += int64(n)
	if from != source {
		last = 0
	}
	for _, id := range ids {
		if id <= last {
			w.fleet.breaks(inOrder, 1, "client %d (%s) got ID %d after ID %d", w.number, w.name, id, last)
		}
		last = id
	}
	if from != w.source {
		w.source, w.last = from, 0
	}
	w.last = max(w.last, last)
	return nil
}

func (w *worker) takeNumbers(ctx context.Context, name string, n int64) error {
	before := w.fleet.top.Load()
	first, err := w.numbers(ctx, name, n)
	if err != nil {
		return err
	}
	values := make([]int64, n)
	for i := range values {
		values[i] = first + int64(i)
	}
	w.fleet.numbers[name].add(w.number, w.fleet.since(time.Now()), values...)
	if name == ordered {
		if first <= before {
			w.fleet.breaks(inOrder, 1, "client %d (%s) got the number %d of the ordered sequence in a call that began after number %d had been returned", w.number, w.name, first, before)
		}
		w.fleet.raise(values[n-1])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.Numbers += n
	return nil
}

// Client is the result of one client.
type Client struct {
	Name     string            `json:"name"`
	Served   int64             `json:"served"` // calls
	Failed   int64             `json:"failed"` // calls
	IDs      int64             `json:"ids"`
	Numbers  int64             `json:"numbers"`
	Errors   map[string]int64  `json:"errors,omitempty"`   // failed calls by their errors
	Examples map[string]string `json:"examples,omitempty"` // the first error of each kind
	Stalls   map[string]Stall  `json:"stalls"`             // the longest of each operation
}

// Stall is the time from the beginning of a call to the first answer of it, or of its
// repetitions.
type Stall struct {
	Seconds float64 `json:"seconds"`
	At      string  `json:"at"` // its beginning, since the start of the soak
}

func (c *Client) stalled(operation string, d, at time.Duration) {
	if s := c.Stalls[operation]; d.Seconds() > s.Seconds {
		c.Stalls[operation] = Stall{d.Seconds(), fmt.Sprint(at.Round(time.Second))}
	}
}

// worst returns the longest stall.
func (c *Client) worst() (worst Stall) {
	for _, s := range c.Stalls {
		if s.Seconds > worst.Seconds {
			worst = s
		}
	}
	return worst
}

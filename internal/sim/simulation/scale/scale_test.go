// Package scale runs fleets of real keepers on a model of one store, in virtual time, and prints the
// columns of docs/scale.md. It has tests only:
//
//	go test ./internal/sim/simulation/scale -v -scale.full
package scale

import (
	"context"
	"flag"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

var full = flag.Bool("scale.full", false, "run both fleets of the page to their ends, not the first until its first outage")

// The fleet: 99% of the 1,024 node numbers. All processes but the last of a hundred start at once, and
// the last ones later.
const (
	processes = 1013
	first     = processes - processes/100
	batches   = 100 // of the rolling restart
)

// The model of the store. It serves operations one after the other, in the order of their arrival.
const (
	each    = time.Second / 303      // the time that one operation takes
	way     = 500 * time.Microsecond // of a request to the store, and of the answer back at least
	tail    = 2 * time.Millisecond   // the mean of what the answer takes more: exponential
	timeout = 2 * time.Second        // of the sender
)

// outage is a time in which the store serves nothing. If it hangs, nothing is answered; else requests
// are refused at once.
type outage struct {
	from, to time.Duration
	hangs    bool
}

// fleet is a fleet of real keepers. All times count from its beginning.
type fleet struct {
	t      *testing.T
	window time.Duration
	begin  time.Time
	memory *storetest.Memory
	work   sync.WaitGroup

	mu      sync.Mutex // guards what follows; the test frees it only while it lets time pass
	rng     *rand.Rand
	free    time.Duration // when the store has served all that has arrived
	away    outage        // the present one, or the last
	keepers [processes]*lease.Keeper
	trips   [processes]int           // operations of the present process
	wrote   [processes]time.Duration // the first write since the last outage, or 0
	writes  []time.Duration          // all of them
	joined  time.Duration            // when the last process had its claim
}

// TestScale holds fleets against the promises of the page, and prints their columns.
func TestScale(t *testing.T) {
	for _, window := range []time.Duration{30 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := &fleet{t: t, window: window, begin: time.Now(), memory: storetest.NewMemory(), rng: rand.New(rand.NewPCG(1, 2))}
			f.mu.Lock()
			f.play()
			for i := range processes {
				f.stop(i)
			}
			f.mu.Unlock()
			f.work.Wait()
		})
		if !*full {
			break
		}
	}
}

// play has happen to the fleet what the page tells, in units of a thirtieth of a window.
func (f *fleet) play() {
	unit := f.window / 30
	f.t.Logf("window %s, %d processes, %d operations a second", f.window, processes, time.Second/each)
	for i := range first {
		f.start(i)
	}
	f.run(45 * unit)
	f.t.Logf("99%% start at once, and all issue after %.1f s", f.joined.Seconds())
	assert.LessOrEqual(f.t, f.joined, 40*time.Second)

	for i := first; i < processes; i++ {
		f.start(i)
	}
	f.run(60 * unit)
	trips := slices.Sorted(slices.Values(f.trips[first:]))
	median, most := trips[len(trips)/2], trips[len(trips)*99/100]
	f.t.Logf("the last 1%% start, and all issue after %.1f s; round trips of a claim: median %d, 99 of 100 %d",
		(f.joined - 45*unit).Seconds(), median, most)
	assert.LessOrEqual(f.t, median, 6)

	f.run(70 * unit)
	rest, _ := f.rate(60*unit, 70*unit)
	f.t.Logf("writes per second at rest: %.2f", rest)
	assert.InEpsilon(f.t, 3*processes/f.window.Seconds(), rest, 0.02)

	end := 70 * unit
	for _, hangs := range []bool{false, true} {
		f.away = outage{end, end + 10*time.Minute, hangs}
		f.run(f.away.to)
		clear(f.wrote[:])
		end = f.away.to + 20*unit
		f.run(end)
		_, peak := f.rate(f.away.to, end)
		assert.NotContains(f.t, f.wrote, time.Duration(0), "a process that has not come back")
		last := slices.Max(f.wrote[:]) - f.away.to
		f.t.Logf("after an outage that hangs (%t): at most %.0f writes in a second, %.2f×; all issue after %.1f s",
			hangs, peak, peak/rest, last.Seconds())
		assert.LessOrEqual(f.t, last, 10*time.Second)
		if f.window <= time.Minute {
			assert.LessOrEqual(f.t, peak, 2*rest)
		}
		if !*full {
			return
		}
	}

	begin := end
	for i := range batches {
		from, to := processes*i/batches, processes*(i+1)/batches
		for k := from; k < to; k++ {
			f.stop(k)
		}
		f.run(begin + time.Duration(i+1)*unit)
		for k := from; k < to; k++ {
			f.start(k)
		}
	}
	end = begin + (batches+30)*unit
	f.run(end)
	_, peak := f.rate(begin, end)
	f.t.Logf("rolling restart: at most %.0f writes in a second, %.2f×; all issue %.1f s after the last batch",
		peak, peak/rest, (f.joined - begin - batches*unit).Seconds())
}

func (f *fleet) now() time.Duration { return time.Since(f.begin) }

// run lets time pass up to end.
func (f *fleet) run(end time.Duration) {
	f.mu.Unlock()
	time.Sleep(end - f.now())
	synctest.Wait()
	f.mu.Lock()
}

func (f *fleet) start(i int) {
	layout := snowflake.Layout{Epoch: f.begin, Tick: 10 * time.Millisecond, TimeBits: 38, NodeBits: 10, SequenceBits: 8}
	client := f.memory.Client()
	client.Before = func(ctx context.Context, op storetest.Op) storetest.Fault { return f.serve(ctx, i, op) }
	f.trips[i] = 0
	f.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		k, err := lease.Claim(ctx, client, lease.WithLayout(layout), lease.WithWindow(f.window),
			lease.WithLogger(slog.New(slog.DiscardHandler)))
		if !assert.NoError(f.t, err) {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.keepers[i], f.joined = k, f.now()
	})
}

func (f *fleet) stop(i int) {
	if k := f.keepers[i]; k != nil {
		f.work.Go(func() { _ = k.Close() })
	}
	f.keepers[i] = nil
}

// serve waits for as long as an operation of process i takes. One whose sender gives up before its turn
// is dropped, and costs nothing.
func (f *fleet) serve(ctx context.Context, i int, op storetest.Op) storetest.Fault {
	f.mu.Lock()
	now := f.now()
	begin := max(now+way, f.free)
	answer, fault := now+timeout, storetest.Unavailable
	switch o := f.away; {
	case now+way < o.to && begin+each > o.from: // it is not served
		if !o.hangs && now+way >= o.from {
			answer = now + 2*way
		}
	case begin-now < timeout:
		f.free = begin + each
		answer, fault = f.free+way+time.Duration(float64(tail)*f.rng.ExpFloat64()), storetest.None
		if op.Kind == storetest.OpSwap && op.Key != "layout" {
			f.writes = append(f.writes, now+way)
			if f.wrote[i] == 0 {
				f.wrote[i] = answer
			}
		}
	}
	if f.keepers[i] == nil {
		f.trips[i]++
	}
	f.mu.Unlock()
	select {
	case <-time.After(answer - now):
	case <-ctx.Done():
	}
	return fault
}

// rate is the mean number of writes per second, and the largest number in one second.
func (f *fleet) rate(from, to time.Duration) (mean, peak float64) {
	seconds := map[time.Duration]float64{}
	for _, at := range f.writes {
		if from <= at && at < to {
			second := at / time.Second
			seconds[second]++
			mean += 1 / (to - from).Seconds()
			peak = max(peak, seconds[second])
		}
	}
	return mean, peak
}

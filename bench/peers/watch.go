package peers

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// life is what came of running a script.
type life struct {
	Result generatortest.Result `json:"result"`
	Waited time.Duration        `json:"waitedNs"`      // as in Outcome
	IDs    []string             `json:"ids,omitempty"` // those of single calls, in order, if they were kept
}

// watch looks on as the processes of a script are called.
type watch[ID cmp.Ordered] struct {
	new     func(*clocktest.Virtual) (generatortest.Process[ID], error)
	tick    time.Duration
	perTick int  // IDs that a tick holds, or 0
	renew   bool // another process is a new generator
	keep    bool // the IDs

	mu   sync.Mutex // guards life, while a script runs
	life life
}

// start starts a process on a clock, or in a bubble if that is nil.
func (w *watch[ID]) start(clock *clocktest.Virtual) (generatortest.Process[ID], error) {
	process, err := w.new(clock)
	if err != nil || process.Next == nil {
		return process, err
	}
	began := time.Now()
	passed := func() time.Duration { return time.Since(began) }
	if clock != nil {
		passed = clock.Passed
	}
	if w.renew {
		process.Restart = func() (generatortest.Process[ID], error) { return w.start(clock) }
		return w.over(process, passed), nil
	}
	return w.all(process, passed), nil
}

// all watches a process, and those that start on its state.
func (w *watch[ID]) all(process generatortest.Process[ID], passed func() time.Duration) generatortest.Process[ID] {
	if restart := process.Restart; restart != nil {
		process.Restart = func() (generatortest.Process[ID], error) {
			next, err := restart()
			if err != nil {
				return next, err
			}
			return w.all(next, passed), nil
		}
	}
	return w.over(process, passed)
}

// over watches the calls of one process.
func (w *watch[ID]) over(process generatortest.Process[ID], passed func() time.Duration) generatortest.Process[ID] {
	var stopped atomic.Bool // another process has taken over
	next, nextN, stream, restart := process.Next, process.NextN, process.Stream, process.Restart
	waited := func(n int, call func()) {
		began := passed()
		call()
		// The time for which a process was stopped in the midst of a call is no wait.
		if beyond := passed() - began - w.allowed(n); beyond > 0 && !stopped.Load() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.life.Waited += beyond
		}
	}
	process.Next = func() (id ID, err error) {
		waited(1, func() { id, err = next() })
		if err == nil && w.keep {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.life.IDs = append(w.life.IDs, fmt.Sprint(id))
		}
		return id, err
	}
	if nextN != nil {
		process.NextN = func(ids []ID) (n int, err error) {
			waited(len(ids), func() { n, err = nextN(ids) })
			return n, err
		}
	}
	if stream != nil {
		process.Stream = func() func() (ID, error) {
			next := stream()
			return func() (id ID, err error) {
				waited(1, func() { id, err = next() })
				return id, err
			}
		}
	}
	if restart != nil {
		process.Restart = func() (generatortest.Process[ID], error) {
			stopped.Store(true)
			return restart()
		}
	}
	return process
}

// allowed is how long a call for n IDs waits if others have used up the tick, and time
// goes on as it should: nothing is lost by that.
func (w *watch[ID]) allowed(n int) time.Duration {
	ticks := 1
	if w.perTick > 0 {
		ticks = (n + w.perTick - 1) / w.perTick
	}
	return time.Duration(ticks) * w.tick
}

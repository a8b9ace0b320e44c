// Package mutants has the bugs of known generators, each as a small generator, and a sound
// one beside them. A fault that is to find a bug must catch the mutant that has it, and find
// nothing in the sound one. The catalogue of faults runs them in virtual time, and the tests
// of package kernel on a real kernel.
//
// You need these names:
//
//   - [All]: the mutants, M1 to M8, M10, M12 and M13, and [Control], the sound generator.
//   - [World]: the clock and the state of a process, which the caller provides.
package mutants

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// World is where a process of a generator runs. Tick and Bits decide how many IDs a tick has.
type World struct {
	Now   func() time.Time
	Sleep func(time.Duration)
	State File
	Tick  time.Duration
	Bits  int // of the sequence, at least 4
}

// File is what a process leaves to the next.
type File interface {
	Read() ([]byte, error)     // nothing, if there is none
	Replace(data []byte) error // as a whole
	Truncate() error
	Append(data []byte) error
}

// Mutant is a generator.
type Mutant struct {
	Name, How string
	// Caught is the fault of the catalogue that finds it and the damage that its users had, and Kernel the fault of a
	// real kernel. Either may be empty, since its faults do not show the bug.
	Caught, Kernel string
	// Wait is how long it claims to wait for a clock that is behind.
	Wait time.Duration
	// Shares says that a second process starts beside a first that still runs.
	Shares bool
	// Unlocked says that its function may be called by several goroutines at once. That of
	// all others needs a lock.
	Unlocked bool
	// Open starts a process, and returns its function for one ID: the tick, and the number
	// within it in the lowest bits. M10 returns a counter.
	Open func(World) (next func() (int64, error), err error)
}

// Control is the name of the sound generator.
const Control = "control"

// All returns the mutants, and the sound generator last. Only M2, M5, M10, M12, M13 and the
// sound one keep state.
func All() []Mutant {
	return []Mutant{
		{Name: "M1", How: "the sequence is reset before the clock is found to be behind", Caught: "F5 duplicate", Kernel: "step-back-1s", Open: openM1},
		{Name: "M2", How: "the last timestamp is stored after the fact, every 3 s", Caught: "F12 duplicate", Kernel: "restart-back-1s", Open: openM2},
		{Name: "M3", How: "the clock may be 10 s behind, and the sequence wraps meanwhile", Caught: "F1 duplicate", Kernel: "step-back-1s", Open: openM3, Wait: 10 * time.Millisecond},
		{Name: "M4", How: "only now == last is looked at", Caught: "F1 duplicate", Kernel: "step-back-1s", Open: openM4},
		{Name: "M5", How: "a lease is checked before use, and not at use", Caught: "F13 duplicate", Kernel: "sigstop", Open: openM5, Shares: true},
		{Name: "M6", How: "the sequence is read, changed and written without a lock", Caught: "F16 duplicate", Kernel: "sigkill", Open: openM6, Unlocked: true},
		{Name: "M7", How: "a step back has one of four reserved numbers", Caught: "F5 duplicate", Open: openM7, Wait: 10 * time.Millisecond},
		{Name: "M8", How: "it sleeps for the whole step", Caught: "F2 stall", Kernel: "step-back-1h", Open: openM8, Wait: 10 * time.Millisecond},
		{Name: "M10", How: "its state file is written in place", Caught: "F12 duplicate", Kernel: "sigkill", Open: openM10},
		{Name: "M12", How: "a claim begins at the clock, and not at the cell's limit", Caught: "F11 duplicate", Kernel: "restart-back-1s", Open: openM12},
		{Name: "M13", How: "a holder that issued nothing releases a limit below its own floor", Kernel: "sigstop", Open: openM13, Shares: true},
		{Name: Control, How: "sound", Open: openControl},
	}
}

// process is the state of most generators: the last tick, and its last sequence number.
type process struct {
	World
	last, seq int64
}

func (p *process) now() int64 { return p.Now().UnixNano() / int64(p.Tick) }

func (p *process) ticks(d time.Duration) int64 { return int64(d / p.Tick) }

func (p *process) mask() int64 { return 1<<p.Bits - 1 }

// after waits for a tick after last.
func (p *process) after(last int64) int64 {
	for {
		now := p.Now()
		if tick := now.UnixNano() / int64(p.Tick); tick > last {
			return tick
		}
		p.Sleep(time.Unix(0, (last+1)*int64(p.Tick)).Sub(now))
	}
}

// count takes the next number of a tick that is the last one's, and returns the tick in which
// it is free.
func (p *process) count(now int64) int64 {
	if p.seq = (p.seq + 1) & p.mask(); p.seq == 0 {
		return p.after(p.last)
	}
	return now
}

func (p *process) id(now int64) int64 {
	p.last = now
	return now<<p.Bits | p.seq
}

func (p *process) behind(now int64) error {
	return fmt.Errorf("the clock is %d ticks behind", p.last-now)
}

// next is sound as long as the process lives.
func (p *process) next(now int64) (int64, error) {
	switch {
	case now < p.last:
		return 0, p.behind(now)
	case now > p.last:
		p.seq = 0
	default:
		now = p.count(now)
	}
	return p.id(now), nil
}

// twitter-archive/snowflake issue 6: a call that fails has reset the sequence, and the clock
// comes back to the same tick.
func openM1(w World) (func() (int64, error), error) { return openEqual(w, true) }

// bwmarrin/snowflake issue 20, on the wall clock.
func openM4(w World) (func() (int64, error), error) { return openEqual(w, false) }

// openEqual looks for now == last first.
func openEqual(w World, rejects bool) (func() (int64, error), error) {
	p := process{World: w}
	return func() (int64, error) {
		now := p.now()
		if now == p.last {
			now = p.count(now)
		} else {
			p.seq = 0
		}
		if rejects && now < p.last {
			return 0, p.behind(now)
		}
		return p.id(now), nil
	}, nil
}

// Meituan-Dianping/Leaf issue 216: IDs issued since the last report can be issued again.
func openM2(w World) (func() (int64, error), error) {
	cell, err := w.cell()
	if err != nil {
		return nil, err
	}
	p := process{World: w, last: cell.Limit}
	return func() (int64, error) {
		id, err := p.next(p.now())
		if err == nil && p.last >= cell.Limit+p.ticks(3*time.Second) {
			cell.Limit = p.last
			err = w.keep(cell)
		}
		return id, err
	}, nil
}

// f4b6a3/tsid-creator pull request 24: within a tolerance the last time is kept, and the
// counter wraps within it. The sequence has 3 bits at most, and whoever waits for the next tick
// looks at the clock often, so that a slow process shows the bug too.
func openM3(w World) (func() (int64, error), error) {
	w.Bits = min(w.Bits, 3)
	p := process{World: w}
	return func() (int64, error) {
		for {
			now := p.now()
			full := p.seq == p.mask()
			switch {
			case now < p.last-p.ticks(10*time.Second):
				return 0, p.behind(now)
			case now == p.last && full:
				p.Sleep(w.Tick / 8)
				continue
			case now > p.last:
				p.last, p.seq = now, 0
			default:
				p.seq = (p.seq + 1) & p.mask()
			}
			return p.id(p.last), nil
		}
	}, nil
}

// openM5 has a lease of 1 s, and looks at it at every hundredth call. A second process waits
// until the lease has ended.
func openM5(w World) (func() (int64, error), error) {
	p := process{World: w}
	me := rand.Int64()
	held := func() (bool, error) {
		is, err := w.cell()
		now := p.now()
		if err != nil || is.Holder != me && now < is.Limit {
			return false, err
		}
		return true, w.keep(cell{me, now + p.ticks(time.Second)})
	}
	if err := p.await(held); err != nil {
		return nil, err
	}
	calls := 0
	return func() (int64, error) {
		if calls++; calls%100 == 0 {
			if ok, err := held(); !ok {
				calls-- // the next call looks again
				return 0, cmp.Or(err, errLost)
			}
		}
		return p.next(p.now())
	}, nil
}

// openM6 reads the clock between the reading and the writing of its word.
func openM6(w World) (func() (int64, error), error) {
	p := process{World: w}
	var word atomic.Int64 // last<<Bits | seq
	return func() (int64, error) {
		was := word.Load()
		now := p.now()
		next := max(was+1, now<<p.Bits)
		if next>>p.Bits > now {
			next = p.after(was>>p.Bits) << p.Bits
		}
		runtime.Gosched() // lets another caller in, for which a busy machine has seldom a processor
		word.Store(next)
		return next, nil
	}, nil
}

// The turn-back index of yitter/IdGenerator: while the clock is behind, it issues the past
// once more, with one of four reserved numbers.
func openM7(w World) (func() (int64, error), error) {
	p := process{World: w}
	var back, index int64
	return func() (int64, error) {
		now := p.now()
		if now < p.last {
			if back == 0 {
				back, index = p.last, index%4+1
			}
			back--
			return back<<p.Bits | index, nil
		}
		back = 0
		if now > p.last {
			p.seq = 5 // 0 to 4 are reserved
		} else if p.seq++; p.seq > p.mask() {
			now, p.seq = p.after(p.last), 5
		}
		return p.id(now), nil
	}, nil
}

// sony/sonyflake issue 39: it sleeps until the clock has caught up, without a bound.
func openM8(w World) (func() (int64, error), error) {
	p := process{World: w}
	return func() (int64, error) {
		if lead := p.last - p.now(); lead > 0 {
			p.Sleep(time.Duration(lead) * p.Tick)
		}
		return p.next(max(p.now(), p.last))
	}, nil
}

// openM10 is a counter that writes its state for each number, line by line, and treats a state
// that it cannot read as a missing one.
func openM10(w World) (func() (int64, error), error) {
	var last int64
	if text, err := w.State.Read(); err == nil {
		_, number, _ := strings.Cut(string(text), "last ")
		last, _ = strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	}
	return func() (int64, error) {
		err := w.State.Truncate()
		for _, line := range []string{"counter m10", "version 1", w.Now().UTC().Format("at 2006-01-02T15:04:05Z"), fmt.Sprintf("last %d", last+1)} {
			err = errors.Join(err, w.State.Append([]byte(line+"\n")))
		}
		if err == nil {
			last++
		}
		return last, err
	}, nil
}

// openM12 keeps a limit as it should, and does not look at it when it starts.
func openM12(w World) (func() (int64, error), error) { return openLease(w, false) }

// openControl is sound: it rejects while the clock is behind, waits for the next tick when its
// sequence is used up, and reserves ticks before it uses them.
func openControl(w World) (func() (int64, error), error) { return openLease(w, true) }

// openLease reserves a second of ticks at a time, as long as no other process has started.
func openLease(w World, fromLimit bool) (func() (int64, error), error) {
	mine, err := w.cell()
	p := process{World: w}
	if err != nil {
		return nil, err
	}
	if !fromLimit {
		mine.Limit = p.now()
	}
	mine.Holder = rand.Int64()
	if err := w.keep(mine); err != nil {
		return nil, err
	}
	p.last, p.seq = mine.Limit-1, p.mask() // the tick before may be used up
	return func() (int64, error) {
		now := p.now()
		if now == p.last && p.seq == p.mask() {
			now = p.after(p.last)
		}
		if now >= mine.Limit {
			if is, err := w.cell(); err != nil || is.Holder != mine.Holder {
				return 0, cmp.Or(err, errLost)
			}
			mine.Limit = now + p.ticks(time.Second)
			if err := w.keep(mine); err != nil {
				return 0, err
			}
		}
		return p.next(now)
	}, nil
}

// openM13 holds 10 s of ticks, and extends that each second. When the cell has not changed
// for longer, a second process claims the ticks behind. It gives them back at once, because
// it has issued nothing, and writes its clock as the limit instead of its floor.
func openM13(w World) (func() (int64, error), error) {
	p := process{World: w}
	window, extend := p.ticks(10*time.Second), p.ticks(time.Second)
	is, err := w.cell()
	limit := is.Limit
	if err == nil && limit > 0 {
		seen, changed := limit, p.now()
		err = p.await(func() (bool, error) {
			is, err := w.cell()
			now := p.now()
			if is.Limit != seen {
				seen, changed = is.Limit, now
			}
			return now > changed+2*extend, err
		})
		limit = p.now() // of the claim that was not used
	}
	if err != nil {
		return nil, err
	}
	floor := max(p.now(), limit)
	limit = floor + window
	if err := w.keep(cell{Limit: limit}); err != nil {
		return nil, err
	}
	lost := false
	p.last, p.seq = floor-1, p.mask()
	return func() (int64, error) {
		now := p.now()
		if !lost && now >= limit-window+extend {
			is, err := w.cell()
			if err != nil {
				return 0, err
			}
			if lost = is.Limit != limit; !lost { // else the rest of the grant is still its own
				limit = now + window
				if err := w.keep(cell{Limit: limit}); err != nil {
					return 0, err
				}
			}
		}
		if now >= limit {
			return 0, errLost
		}
		return p.next(now)
	}, nil
}

// await calls done once in a tick until it returns true or an error.
func (p *process) await(done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		p.Sleep(10 * time.Millisecond)
	}
}

var errLost = errors.New("another process has the lease")

// cell is what all but M10 keep: who holds the generator's number, and the first tick that
// nobody has reserved.
type cell struct{ Holder, Limit int64 }

func (w World) cell() (is cell, err error) {
	text, err := w.State.Read()
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &is)
	}
	return is, err
}

func (w World) keep(to cell) error {
	text, err := json.Marshal(to)
	if err != nil {
		return err
	}
	return w.State.Replace(text)
}

package generatortest_test

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

const (
	ms      = time.Millisecond
	forever = generatortest.Forever
)

var (
	noon   = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	errNo  = errors.New("no")
	errBad = errors.New("bad")
)

// tid is the ID of a tape: milliseconds since noon, and 4 bits of sequence.
type tid int64

func (i tid) String() string  { return fmt.Sprintf("%d.%d", i>>4, i&15) }
func (i tid) time() time.Time { return noon.Add(time.Duration(i>>4) * ms) }
func at(tick, seq int64) tid  { return tid(tick<<4 | seq) }

// tape is a generator that gives the answers it was told, and then others: by default the
// next ID after the largest, or the first of the clock's tick. It locks nothing while it reads the
// clock, since a takeover would leave the lock held.
type tape struct {
	clock             *clocktest.Virtual
	then              answer                            // the others
	starting, closing func(*tape) error                 // of a process
	change            func(*generatortest.Process[tid]) // what else its processes do
	mu                sync.Mutex                        // of all below
	told              []answer
	last              tid
	starts, closes    int
	calls             int
	batches           []int // their sizes
	streams           int   // that were started
}

type answer func(t *tape) (tid, error)

func (t *tape) Next() (tid, error) {
	t.mu.Lock()
	t.calls++
	a := t.then
	if len(t.told) > 0 {
		a, t.told = t.told[0], t.told[1:]
	}
	t.mu.Unlock()
	if a == nil {
		a = good
	}
	return a(t)
}

func good(t *tape) (tid, error) {
	now := t.clock.Wall().Sub(noon)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last+1, at(int64(now/ms), 0))
	return t.last, nil
}

// is answers with an ID.
func is(id tid) answer {
	return func(t *tape) (tid, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.last = max(t.last, id)
		return id, nil
	}
}

// no answers with an error.
func no(*tape) (tid, error) { return at(99_999_999, 0), errNo } // an ID beside an error does not count

// from fails while the clock is before this long after noon.
func from(d time.Duration) answer {
	return func(t *tape) (tid, error) {
		if t.clock.Wall().Before(noon.Add(d)) {
			return no(t)
		}
		return good(t)
	}
}

// after waits before it answers.
func after(d time.Duration, a answer) answer {
	return func(t *tape) (tid, error) {
		t.clock.Sleep(d)
		return a(t)
	}
}

// looks reads the clock, at which a step of the wall may wait.
func looks(readings int, a answer) answer {
	return func(t *tape) (tid, error) {
		for range readings {
			t.clock.Now()
		}
		return a(t)
	}
}

// process starts the tape as a process. Batches and streams take from the tape, too.
func (t *tape) process() (generatortest.Process[tid], error) {
	t.starts++
	p := generatortest.Process[tid]{
		Next: t.Next,
		NextN: func(ids []tid) (int, error) {
			t.mu.Lock()
			t.batches = append(t.batches, len(ids))
			t.mu.Unlock()
			for i := range ids {
				id, err := t.Next()
				if errors.Is(err, errShort) {
					return i, nil
				} else if err != nil {
					return i, err
				}
				ids[i] = id
			}
			return len(ids), nil
		},
		Stream: func() func() (tid, error) { t.streams++; return t.Next },
		Close: func() error {
			if t.closes++; t.closing == nil {
				return nil
			}
			return t.closing(t)
		},
		Restart: t.process,
	}
	if t.change != nil {
		t.change(&p)
	}
	if t.starting == nil {
		return p, nil
	}
	return p, t.starting(t)
}

// subject is a Subject that plays the tape.
func (t *tape) subject(claim generatortest.Claim) generatortest.Subject[tid] {
	return generatortest.Subject[tid]{
		Name: "tape",
		New: func(clock *clocktest.Virtual) (generatortest.Process[tid], error) {
			t.clock, t.streams = clock, 0
			return t.process()
		},
		Claim: claim,
		Time:  tid.time,
		Tick:  ms,
	}
}

// loose is a Subject of which little is judged.
func (t *tape) loose() generatortest.Subject[tid] {
	s := t.subject(generatortest.Claim{Unordered: true, Exhausted: borrow(forever), Behind: borrow(forever)})
	s.Time = nil
	return s
}

var errShort = errors.New("ends a batch without an error")

func short(*tape) (tid, error) { return 0, errShort }

// taped is a Subject that plays answers.
func taped(claim generatortest.Claim, answers ...answer) generatortest.Subject[tid] {
	return (&tape{told: answers}).subject(claim)
}

func claim(exhausted, behind generatortest.Bound) generatortest.Claim {
	return generatortest.Claim{Exhausted: exhausted, Behind: behind}
}

func wait(d time.Duration) generatortest.Bound   { return generatortest.Bound{Wait: d} }
func borrow(d time.Duration) generatortest.Bound { return generatortest.Bound{Borrow: d} }

// parse reads a script that is right.
func parse(text string) generatortest.Script {
	s, err := generatortest.ParseScript(text)
	if err != nil {
		panic(err)
	}
	return s
}

// lines are the violations' texts.
func lines(r generatortest.Result) []string {
	texts := []string{}
	for _, v := range r.Violations {
		texts = append(texts, v.String())
	}
	return texts
}

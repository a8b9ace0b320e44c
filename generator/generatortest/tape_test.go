package generatortest_test

import (
	"errors"
	"fmt"
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

// tape is a generator that gives the answers it was told, and then good ones: the
// next ID after the largest, or the first of the clock's tick. It has no lock, which
// a takeover would leave held.
type tape struct {
	clock *clocktest.Virtual
	told  []answer
	last  tid
	calls int
}

type answer func(t *tape) (tid, error)

func (t *tape) Next() (tid, error) {
	t.calls++
	if len(t.told) == 0 {
		return good(t)
	}
	a := t.told[0]
	t.told = t.told[1:]
	return a(t)
}

func good(t *tape) (tid, error) {
	now := t.clock.Wall().Sub(noon)
	return is(max(t.last+1, at(int64(now/ms), 0)))(t)
}

// is answers with an ID.
func is(id tid) answer {
	return func(t *tape) (tid, error) {
		t.last = max(t.last, id)
		return id, nil
	}
}

// no answers with an error.
func no(*tape) (tid, error) { return at(99_999_999, 0), errNo } // an ID beside an error does not count

// fromNoon fails while the clock is before noon.
func fromNoon(t *tape) (tid, error) {
	if t.clock.Wall().Before(noon) {
		return no(t)
	}
	return good(t)
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

// process is the tape as a process. Batches and streams take from the tape, too.
func (t *tape) process() generatortest.Process[tid] {
	return generatortest.Process[tid]{
		Next: t.Next,
		NextN: func(ids []tid) (int, error) {
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
		Stream:  func() func() (tid, error) { return t.Next },
		Restart: func() (generatortest.Process[tid], error) { return t.process(), nil },
	}
}

var errShort = errors.New("ends a batch without an error")

func short(*tape) (tid, error) { return 0, errShort }

// taped is a Subject that plays answers.
func taped(claim generatortest.Claim, answers ...answer) generatortest.Subject[tid] {
	return generatortest.Subject[tid]{
		Name: "tape",
		New: func(clock *clocktest.Virtual) (generatortest.Process[tid], error) {
			return (&tape{clock: clock, told: answers}).process(), nil
		},
		Claim: claim,
		Time:  tid.time,
		Tick:  ms,
	}
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

package chaos_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

const (
	mutantBits = 4 // of sequence: 16 IDs per millisecond
	mutantMask = 1<<mutantBits - 1
	window     = time.Second // how far ahead ticks are reserved
)

// state is the state that a process leaves behind: the holder of the node number, and
// the first millisecond that is not reserved.
type state struct {
	mu     sync.Mutex
	holder *control
	limit  int64
}

// control is a small generator, correct under every fault of the catalogue: it locks,
// rejects while the clock is behind, waits for the next tick when its sequence is used
// up, and reserves ticks before it uses them. It shows that the suite asks for nothing
// impossible. Each mutant is the control with one thing broken.
type control struct {
	clock *clocktest.Virtual
	kept  *state

	mu        sync.Mutex
	last, seq int64
	limit     int64 // reserved ticks end here
}

func newControl(clock *clocktest.Virtual, kept *state) *control {
	c := &control{clock: clock, kept: kept}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.holder, c.limit = c, kept.limit
	c.last, c.seq = c.limit-1, mutantMask // the tick before may be used up
	return c
}

func (c *control) ms() int64 { return c.clock.Now().UnixMilli() }

func (c *control) Next() (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.ms()
	if now < c.last {
		return 0, behind(c.last - now)
	}
	seq := int64(0)
	if now == c.last {
		if seq = (c.seq + 1) & mutantMask; seq == 0 {
			now = c.after(c.last)
		}
	}
	if now >= c.limit {
		if err := c.reserve(now); err != nil {
			return 0, err
		}
	}
	c.last, c.seq = now, seq
	return now<<mutantBits | seq, nil
}

// after waits for a millisecond after last.
func (c *control) after(last int64) int64 {
	for {
		now := c.clock.Now()
		if now.UnixMilli() > last {
			return now.UnixMilli()
		}
		c.clock.Sleep(time.UnixMilli(last + 1).Sub(now))
	}
}

// reserve makes ticks up to a while after now this process's, and no other's.
func (c *control) reserve(now int64) error {
	c.kept.mu.Lock()
	defer c.kept.mu.Unlock()
	if c.kept.holder != c {
		return errLost
	}
	c.limit = now + window.Milliseconds()
	c.kept.limit = c.limit
	return nil
}

var errLost = errors.New("another process has taken the node number")

type behind int64

func (b behind) Error() string { return fmt.Sprintf("clock is %d ms behind", int64(b)) }

// issuer is what the control and the mutants have in common.
type issuer interface{ Next() (int64, error) }

// mutantSubject is a generator that waits when exhausted and rejects when behind,
// unless it claims otherwise.
func mutantSubject(name string, claim generatortest.Claim, start func(*clocktest.Virtual, *state) issuer) generatortest.Subject[int64] {
	var process func(*clocktest.Virtual, *state) generatortest.Process[int64]
	process = func(clock *clocktest.Virtual, kept *state) generatortest.Process[int64] {
		return generatortest.Process[int64]{
			Next: start(clock, kept).Next,
			Restart: func() (generatortest.Process[int64], error) {
				return process(clock, kept), nil
			},
		}
	}
	return generatortest.Subject[int64]{
		Name: name,
		New: func(clock *clocktest.Virtual) (generatortest.Process[int64], error) {
			if clock.Now().Before(mutantEpoch) {
				return generatortest.Process[int64]{}, errors.New("clock is before 2020")
			}
			return process(clock, &state{}), nil
		},
		Claim: claim,
		Time:  func(id int64) time.Time { return time.UnixMilli(id >> mutantBits) },
		Tick:  time.Millisecond,
		Epoch: mutantEpoch,
	}
}

var mutantEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// waits is the claim of a generator that waits for the next tick.
var waits = generatortest.Claim{Exhausted: generatortest.Bound{Wait: generatortest.Forever}}

func TestControlIsSound(t *testing.T) {
	generatortest.Test(t, mutantSubject("control", waits, func(clock *clocktest.Virtual, kept *state) issuer {
		return newControl(clock, kept)
	}))
}

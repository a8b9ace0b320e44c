package fleet

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Promise is one that can be broken.
type Promise string

// The promises of a service, and of processes that issue IDs by themselves.
const (
	Unique  Promise = "no ID or number comes twice"
	InOrder Promise = "IDs and ordered numbers are in order"
	Known   Promise = "calls fail only because no server serves them now"
	Ending  Promise = "every call returns"
	Lives   Promise = "no server ends by itself"
	Returns Promise = "servers serve again after a fault"
	Bounded Promise = "no process grows"
	Stands  Promise = "a store does not go back"
)

// Broken is a promise that does not hold.
type Broken struct {
	Promise  Promise
	Count    int64
	Examples []string // the first ones
}

func (b Broken) String() string {
	text := fmt.Sprintf("BROKEN %d times: %s", b.Count, b.Promise)
	for _, e := range b.Examples {
		text += "\n  " + strings.ReplaceAll(strings.TrimSpace(e), "\n", "\n    ")
	}
	return text
}

// mostShown bounds the examples of a broken promise.
const mostShown = 10

// Verdict has the promises that a fleet has broken, whether its members are processes or
// goroutines of a test. It is safe for use by several goroutines at once.
type Verdict struct {
	of    string // names the fleet, in examples
	began time.Time

	mu     sync.Mutex // of the next
	broken map[Promise]*Broken
}

// NewVerdict returns the verdict on a fleet that starts now: no promise is broken.
func NewVerdict(of string) *Verdict {
	return &Verdict{of: of, began: time.Now(), broken: map[Promise]*Broken{}}
}

// Since is the time from the start of the fleet.
func (v *Verdict) Since(t time.Time) time.Duration { return t.Sub(v.began).Round(time.Millisecond) }

// Break notes that a promise is broken.
func (v *Verdict) Break(p Promise, format string, args ...any) {
	v.Note(p, 1, fmt.Sprintf(format, args...))
}

// Note notes that a promise was broken so many times, with an example. No times are none.
func (v *Verdict) Note(p Promise, times int64, example string) {
	if times <= 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	b := v.broken[p]
	if b == nil {
		b = &Broken{Promise: p}
		v.broken[p] = b
	}
	b.Count += times
	seen := func(e string) bool { return strings.HasSuffix(e, example) } // by an earlier check
	if len(b.Examples) < mostShown && !slices.ContainsFunc(b.Examples, seen) {
		b.Examples = append(b.Examples, fmt.Sprintf("%s: %s: %s", v.Since(time.Now()), v.of, example))
	}
}

// Broken returns the promises that do not hold.
func (v *Verdict) Broken() (broken []Broken) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range []Promise{Unique, InOrder, Known, Ending, Lives, Returns, Bounded, Stands} {
		if b := v.broken[p]; b != nil {
			broken = append(broken, *b)
		}
	}
	return broken
}

// Times is how often a promise was broken.
func (v *Verdict) Times(p Promise) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if b := v.broken[p]; b != nil {
		return b.Count
	}
	return 0
}

// Package seam stands in for sync/atomic in the simulated copies of the
// production packages. Its words are plain values that show every access to an
// [Observer], which may run other callers in between.
//
// A word must not be used by two goroutines at the same time: a simulated run
// has only one that is awake.
package seam

import (
	"fmt"
	"time"
)

// Op is what an access does.
type Op uint8

// The accesses.
const (
	Load Op = iota
	Store
	Swap
	Add
	CompareAndSwap
	Or
	Lock
)

// String returns the verb for a trace.
func (o Op) String() string {
	return [...]string{"load", "store", "swap", "add", "compare-and-swap", "or", "lock"}[o]
}

// Access is one access to a word, after the fact.
type Access struct {
	Word     string // the field's name
	Number   int    // of the word among those of its name, as Watch gave it
	Op       Op
	Old, New uint64 // before and after; Int64 shows its bits
	Failed   bool   // a compare-and-swap that found another value than it expected
}

// Observer sees the accesses to the words that were given it by Observe.
type Observer interface {
	// Watch tells of a word that is observed from now on, and of its value. It
	// returns the word's number among those of its name.
	Watch(word string, value uint64) int
	Before()      // the access is about to happen, and others may come first
	After(Access) // it has happened
	// Await lets others run until ready reports true.
	Await(ready func() bool)
}

// Uint64 is a 64-bit word with the methods of atomic.Uint64. The zero word is
// ready, and observed by nobody.
type Uint64 struct {
	value    uint64
	name     string
	number   int
	observer Observer
}

// Observe has o see every access from now on, under the word's name.
func (w *Uint64) Observe(name string, o Observer) {
	if w.observer != o {
		w.name, w.observer = name, o
		w.number = o.Watch(name, w.value)
	}
}

func (w *Uint64) access(op Op, change func(old uint64) (uint64, bool)) (old, now uint64, done bool) {
	if w.observer != nil {
		w.observer.Before()
	}
	old = w.value
	if now, done = change(old); done {
		w.value = now
	} else {
		now = old
	}
	if w.observer != nil {
		w.observer.After(Access{Word: w.name, Number: w.number, Op: op, Old: old, New: now, Failed: !done})
	}
	return old, now, done
}

// Load is as that of atomic.Uint64.
func (w *Uint64) Load() uint64 {
	old, _, _ := w.access(Load, func(old uint64) (uint64, bool) { return old, true })
	return old
}

// Store is as that of atomic.Uint64.
func (w *Uint64) Store(v uint64) {
	w.access(Store, func(uint64) (uint64, bool) { return v, true })
}

// Swap is as that of atomic.Uint64.
func (w *Uint64) Swap(v uint64) uint64 {
	old, _, _ := w.access(Swap, func(uint64) (uint64, bool) { return v, true })
	return old
}

// Add is as that of atomic.Uint64.
func (w *Uint64) Add(v uint64) uint64 {
	_, now, _ := w.access(Add, func(old uint64) (uint64, bool) { return old + v, true })
	return now
}

// CompareAndSwap is as that of atomic.Uint64.
func (w *Uint64) CompareAndSwap(from, to uint64) bool {
	_, _, done := w.access(CompareAndSwap, func(old uint64) (uint64, bool) { return to, old == from })
	return done
}

// Or is as that of atomic.Uint64.
func (w *Uint64) Or(mask uint64) uint64 {
	old, _, _ := w.access(Or, func(old uint64) (uint64, bool) { return old | mask, true })
	return old
}

// Int64 is a 64-bit word with the methods of atomic.Int64.
type Int64 struct{ word Uint64 }

// Observe has o see every access from now on, under the word's name.
func (w *Int64) Observe(name string, o Observer) { w.word.Observe(name, o) }

// Load is as that of atomic.Int64.
func (w *Int64) Load() int64 { return int64(w.word.Load()) }

// Store is as that of atomic.Int64.
func (w *Int64) Store(v int64) { w.word.Store(uint64(v)) }

// Swap is as that of atomic.Int64.
func (w *Int64) Swap(v int64) int64 { return int64(w.word.Swap(uint64(v))) }

// Add is as that of atomic.Int64.
func (w *Int64) Add(v int64) int64 { return int64(w.word.Add(uint64(v))) }

// CompareAndSwap is as that of atomic.Int64.
func (w *Int64) CompareAndSwap(from, to int64) bool {
	return w.word.CompareAndSwap(uint64(from), uint64(to))
}

// Since stands in for time.Since: in a simulated run no time of the machine's
// passes.
func Since(time.Time) time.Duration { return 0 }

// SequenceStart stands in for strategies.SequenceStart, whose draws no seed
// repeats: it draws the same number every time, so that a check knows which.
type SequenceStart uint64

// Draw returns the number to begin a sequence with.
func (s SequenceStart) Draw() uint64 { return uint64(s) }

// Validate returns an error unless the start fits a sequence of perTick IDs.
func (s SequenceStart) Validate(perTick int64) error {
	if s >= SequenceStart(perTick) {
		return fmt.Errorf("sequence start %d: the layout holds %d IDs per tick", s, perTick)
	}
	return nil
}

//go:build simulate

package word

import (
	"math/rand/v2"
	"unsafe"
)

// AddedBits is how many bits a sequence must have for its slots to be taken by addition.
const AddedBits = 3

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
)

// String returns the verb for a trace.
func (o Op) String() string {
	return [...]string{"load", "store", "swap", "add", "compare-and-swap", "or"}[o]
}

// Access is one access to a word, after the fact.
type Access struct {
	Name     string // given by Name, or empty
	Op       Op
	Old, New uint64 // before and after; of a pointer, how often it was set
	Failed   bool   // a compare-and-swap that found another value than it expected
}

// Observer sees every access to every word of the process. Two goroutines must not use a
// word at the same time: in a simulated run only one goroutine is awake.
type Observer interface {
	Before()      // the access is about to happen, and others may come first
	After(Access) // it has happened
	Below(n uint64) uint64
}

// Observed is the observer of the present run, or nil. A process has one run at a time.
var Observed Observer

// Below returns a number from 0 up to, but not including, n, drawn by the observer if
// there is one.
func Below(n uint64) uint64 {
	if Observed != nil {
		return Observed.Below(n)
	}
	return rand.Uint64N(n)
}

// Name gives a word the name that accesses to it show.
func Name[W any](w *W, name string) { any(w).(interface{ setName(string) }).setName(name) }

// Mapped is a word of its own: a simulation maps no memory.
func Mapped(unsafe.Pointer) *Uint64 { return new(Uint64) }

// Uint64 is a plain value with the methods of atomic.Uint64.
type Uint64 struct {
	value uint64
	name  string
}

func (w *Uint64) setName(name string) { w.name = name }

// access makes an access and shows it to the observer.
func (w *Uint64) access(op Op, change func(old uint64) (uint64, bool)) (old, now uint64, done bool) {
	if Observed != nil {
		Observed.Before()
	}
	old = w.value
	if now, done = change(old); done {
		w.value = now
	} else {
		now = old
	}
	if Observed != nil {
		Observed.After(Access{Name: w.name, Op: op, Old: old, New: now, Failed: !done})
	}
	return old, now, done
}

func (w *Uint64) Load() uint64 {
	old, _, _ := w.access(Load, func(old uint64) (uint64, bool) { return old, true })
	return old
}

func (w *Uint64) Store(v uint64) {
	w.access(Store, func(uint64) (uint64, bool) { return v, true })
}

func (w *Uint64) Swap(v uint64) uint64 {
	old, _, _ := w.access(Swap, func(uint64) (uint64, bool) { return v, true })
	return old
}

func (w *Uint64) Add(v uint64) uint64 {
	_, now, _ := w.access(Add, func(old uint64) (uint64, bool) { return old + v, true })
	return now
}

func (w *Uint64) CompareAndSwap(from, to uint64) bool {
	_, _, done := w.access(CompareAndSwap, func(old uint64) (uint64, bool) { return to, old == from })
	return done
}

func (w *Uint64) Or(mask uint64) uint64 {
	old, _, _ := w.access(Or, func(old uint64) (uint64, bool) { return old | mask, true })
	return old
}

// Int64 is a plain value with the methods of atomic.Int64.
type Int64 struct{ word Uint64 }

func (w *Int64) setName(name string) { w.word.setName(name) }

func (w *Int64) Load() int64       { return int64(w.word.Load()) }
func (w *Int64) Store(v int64)     { w.word.Store(uint64(v)) }
func (w *Int64) Add(v int64) int64 { return int64(w.word.Add(uint64(v))) }
func (w *Int64) CompareAndSwap(from, to int64) bool {
	return w.word.CompareAndSwap(uint64(from), uint64(to))
}

// Pointer is a plain pointer with the methods of atomic.Pointer.
type Pointer[T any] struct {
	word  Uint64 // counts how often it was set
	value *T
}

func (p *Pointer[T]) setName(name string) { p.word.setName(name) }

func (p *Pointer[T]) Load() (value *T) {
	p.word.access(Load, func(old uint64) (uint64, bool) { value = p.value; return old, true })
	return value
}

func (p *Pointer[T]) Store(value *T) { p.Swap(value) }

func (p *Pointer[T]) Swap(value *T) (old *T) {
	p.word.access(Swap, func(n uint64) (uint64, bool) { old, p.value = p.value, value; return n + 1, true })
	return old
}

func (p *Pointer[T]) CompareAndSwap(from, to *T) bool {
	_, _, done := p.word.access(CompareAndSwap, func(old uint64) (uint64, bool) {
		if p.value != from {
			return old, false
		}
		p.value = to
		return old + 1, true
	})
	return done
}

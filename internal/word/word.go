//go:build !simulate

// Package word has the words of memory that goroutines share in the core: those of
// sync/atomic. With the build tag simulate, which only package internal/sim/simulation
// uses, they show every access to an observer, which may run other callers in between.
// So the simulation runs the released code, and adds no cost to it.
package word

import (
	"math/rand/v2"
	"sync/atomic"
	"unsafe"
)

// Uint64, Int64 and Pointer are those of sync/atomic.
type (
	Uint64         = atomic.Uint64
	Int64          = atomic.Int64
	Pointer[T any] = atomic.Pointer[T]
)

// Mapped is the word at an address outside of the heap.
func Mapped(at unsafe.Pointer) *Uint64 { return (*Uint64)(at) }

// AddedBits is how many bits a sequence must have for its slots to be taken by addition. In a simulation
// it is less, so that a few calls reach the end of a tick.
const AddedBits = 8

// Name tells the observer of a simulation the name of a word. Here it does nothing.
func Name[W any](*W, string) {}

// Below returns a random number from 0 up to, but not including, n.
func Below(n uint64) uint64 { return rand.Uint64N(n) }

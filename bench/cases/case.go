// Package cases has the ways to make an ID that the benchmark compares: those of
// tickflake, those of other generators, and the least that an ID can cost.
//
// Each is called as its users call it. None is set up in a way that the others are
// not: where the format of IDs is the limit, there is another case, if the generator
// allows it, with a sequence so wide that it is not.
package cases

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/bench/results"
)

// Case is a way to make IDs.
type Case struct {
	Name  string // unique
	Group results.Group
	Bits  int // of an ID, with those that are always the same
	Limit Limit
	Note  string
	// Widened says that its sequence is not as wide as by default, but wider.
	Widened bool
	// Unit is what the number of IDs that are asked for in a row is a multiple of;
	// 0 stands for 1.
	Unit int
	// Open returns a new source of IDs. What it needs is given back when the source
	// is closed; ctx bounds how long it takes to get that.
	Open func(ctx context.Context) (Source, error)
}

// Source makes the IDs of one case, as one process does.
type Source struct {
	// Loop returns a loop for one goroutine. Several can run at the same time, and
	// then share what the generator shares.
	Loop func() Loop
	// Issue makes one ID. It is not for use by several goroutines at once.
	Issue func() (ID, error)
	// Close ends the source. It is nil if there is nothing to end.
	Close func() error
}

// Loop makes n IDs, one after the other or as the case says.
type Loop func(n int) error

// ID holds an ID of up to 160 bits in its first bytes, most significant first.
type ID [20]byte

// idOf returns the ID that is written in b.
func idOf(b []byte) (id ID) {
	copy(id[:], b)
	return id
}

// idOfInt returns the ID that is a number of 64 bits.
func idOfInt(n uint64) (id ID) {
	binary.BigEndian.PutUint64(id[:], n)
	return id
}

// Limit is how many different IDs a format has room for: so many in each unit of its
// time. The zero Limit is none.
type Limit struct {
	IDs int
	Per time.Duration
	// Repeats and Ahead say that a generator that is asked for more of them does not
	// hold callers up, but issues IDs that it has issued before, or those of a time
	// that is still to come.
	Repeats, Ahead bool
}

// NanosecondsPerID is what an ID takes at the limit, or 0 if there is none.
func (l Limit) NanosecondsPerID() float64 {
	if l.IDs == 0 {
		return 0
	}
	return float64(l.Per) / float64(l.IDs)
}

// Binds says that the limit may be what a caller in a loop measures: it is held up, and
// an ID at the limit takes longer than 50 ns, which is less than most generators need.
func (l Limit) Binds() bool { return !l.Repeats && !l.Ahead && l.NanosecondsPerID() > 50 }

// LeadIn is how many IDs use up what is left of a tick when goroutines share them out,
// so that the limit holds from the next one on. It is 0 if the limit does not bind.
func (l Limit) LeadIn(goroutines int) int {
	if !l.Binds() {
		return 0
	}
	return l.IDs + goroutines
}

// String returns, for example, "4096 per 1ms", or "none".
func (l Limit) String() string {
	if l.IDs == 0 {
		return "none"
	}
	return fmt.Sprintf("%s per %s", results.Figure(float64(l.IDs)), l.Per)
}

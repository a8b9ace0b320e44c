// Package peers has other public ID generators, for the faults on a real kernel, those in
// virtual time, and the benchmark.
//
// You need these names: [List] returns [Peer] values, whose New makes a [Generator] on a
// [Clock].
package peers

import (
	"encoding"
	"fmt"
	"strconv"
	"time"
)

// Peer is a generator of another project, in one of its configurations.
type Peer struct {
	Name string // unique
	How  string // how it is made, as its README says or better: "snowflake.NewNode(7)"

	// Promises of its documentation. Ordered: the IDs of one process ascend, whatever the
	// clock does. Restarts: no ID comes twice across a restart.
	Ordered, Restarts bool
	Claim             string // what it says about waiting and clocks, and where
	// Full is what a call does when the IDs of a tick are used up.
	Full Full

	// PackageTime says that it reads package time, so that only a clock of the system moves it.
	PackageTime bool
	// Shared says that its state is in package variables: all generators of a process
	// have the same.
	Shared bool

	// Integer says that its IDs are integers of 64 bits. Those of others are texts that
	// sort as the IDs do.
	Integer bool
	Bits    int // of an ID, constant bits included
	// Tick is the unit of the time in its IDs, or 0: there is none. PerTick is how many
	// IDs a generator has in one, or 0: as many as anybody calls for.
	Tick    time.Duration
	PerTick int64
	Epoch   time.Time // when the time in its IDs begins
	End     time.Time // when it ends; zero: after 2262
	// Time is the start of an ID's tick, zero for a text that is no ID.
	Time func(id string) time.Time
	// Low is the lowest byte of an ID, by which programs choose a shard.
	Low func(id string) (byte, error)
	// Slot is the place of an ID in time, if it is an integer: the number of its tick
	// since Epoch, times PerTick, plus its number in the tick. It leaves out the node.
	Slot func(id int64) int64
	// New makes a generator as a new process does. Clock is [System], or another one, which one
	// of package time does not read.
	New func(Clock) (Generator, error)
}

// Generator is one that was made. Goroutines may call its functions at the same time.
type Generator struct {
	Next    func() (id string, err error)
	Integer func() (int64, error) // the same without a text; nil if the IDs are texts
	// Loop makes n IDs, without a text, by a function value.
	Loop func(n int) error
}

// Full is what a generator does when the IDs of a tick are used up.
type Full string

// What a generator does when the IDs of a tick are used up.
const (
	Waits   Full = "waits for the next tick"
	Ahead   Full = "runs ahead of the clock"
	Repeats Full = "repeats IDs"
	Fails   Full = "fails"
)

// Clock is the time that a generator goes by: that of the system, or one that a fault changes.
type Clock interface {
	Now() time.Time
	Sleep(time.Duration)
}

// System is the clock of the system, without the monotonic reading: a step reaches it.
var System Clock = system{}

type system struct{}

func (system) Now() time.Time        { return time.Now().Round(0) }
func (system) Sleep(d time.Duration) { time.Sleep(d) }

// integers completes a peer whose IDs are integers: from Tick, PerTick, Epoch and Slot, and
// from a function that makes a generator. Unless its fields say more, its state is that of the
// generator, and it waits for the next tick.
func integers(p Peer, open func(Clock) (next func() (int64, error), err error)) Peer {
	p.Integer, p.Bits = true, 64
	if p.Full == "" {
		p.Full = Waits
	}
	p.Time = func(id string) time.Time {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return time.Time{}
		}
		return p.Epoch.Add(time.Duration(p.Slot(n)/p.PerTick) * p.Tick)
	}
	p.Low = func(id string) (byte, error) {
		n, err := strconv.ParseInt(id, 10, 64)
		return byte(n), err
	}
	p.New = func(clock Clock) (Generator, error) {
		next, err := open(clock)
		return Generator{Loop: loop(next), Integer: next, Next: func() (string, error) {
			id, err := next()
			return strconv.FormatInt(id, 10), err
		}}, err
	}
	return p
}

// binary is the type of IDs that have a text.
type binary interface {
	~[12]byte | ~[16]byte | ~[20]byte
	encoding.TextMarshaler
}

// texts completes a peer whose IDs are texts. system makes one as a program does, on the clock of the
// system; on makes a generator on a clock. One of them may be nil: then the other serves every clock.
func texts[T binary](p Peer, at func(T) time.Time, system func() (T, error), on func(Clock) func() (T, error)) Peer {
	var none T
	p.Bits = 8 * len(none)
	parse := func(text string) (id T, err error) {
		err = any(&id).(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		return id, err
	}
	p.Time = func(text string) time.Time {
		id, err := parse(text)
		if err != nil {
			return time.Time{}
		}
		return at(id)
	}
	p.Low = func(text string) (byte, error) {
		id, err := parse(text)
		return id[len(id)-1], err
	}
	p.New = func(clock Clock) (Generator, error) {
		next := system
		if system == nil || clock != System && on != nil {
			next = on(clock)
		}
		return Generator{Loop: loop(next), Next: func() (string, error) {
			id, err := next()
			if err != nil {
				return "", err
			}
			text, err := id.MarshalText()
			return string(text), err
		}}, nil
	}
	return p
}

// sure is a generator that never fails.
func sure[T any](next func() T) func() (T, error) {
	return func() (T, error) { return next(), nil }
}

func loop[T any](next func() (T, error)) func(n int) error {
	return func(n int) error {
		for range n {
			if _, err := next(); err != nil {
				return fmt.Errorf("make an ID: %w", err)
			}
		}
		return nil
	}
}

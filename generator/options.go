package generator

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// Clock tells a [Generator] what time it is. [*monoclock.Clock] is the default and
// what production wants; the real and mock clocks of github.com/benbjohnson/clock
// serve as well, and so does anything with this method.
//
// A Clock that reads the raw wall clock is a supported choice: the strategy then
// decides what happens after a step back.
//
// Times before 1970 count as 1970.
//
// A Clock that also has After(time.Duration) <-chan time.Time, as [time.After],
// is waited for by it; a fake clock must have it, or the generator waits in real
// time for a clock that stands still. A Clock must be safe for use by several
// goroutines at once.
type Clock interface {
	Now() time.Time
}

// Option configures a [Generator] in [New]. When an option is given twice, the
// last one holds.
type Option func(*config)

type config struct {
	layout   snowflake.Layout
	clock    Clock
	strategy strategies.Strategy
	start    strategies.SequenceStart

	node   int64
	parts  []int64 // WithNodeParts, or nil
	option string  // the option that gave the node number, or empty

	lease               Lease
	leased              bool // WithLease was given
	ownLayout, ownClock bool // WithLayout and WithClock were
}

// WithLayout sets the layout of the IDs. The default is [snowflake.Default].
func WithLayout(l snowflake.Layout) Option {
	return func(c *config) { c.layout, c.ownLayout = l.Clone(), true }
}

// WithNode sets the node number, from 0 to the layout's largest. The default is
// 0, which serves a program that runs once; give every process that runs at the
// same time a number of its own.
//
// The generator holds the number from its start to the end of the layout's time.
// That makes its IDs unique within this process only: a new process with the
// same number knows nothing of what this one issued. It repeats IDs if its clock
// begins at or before the last tick issued here, as it does after a step back.
func WithNode(n int64) Option {
	return func(c *config) { c.node, c.parts, c.option = n, nil, "WithNode" }
}

// WithNodeParts sets the node number by its parts, high bits first, for layouts
// that name them: WithNodeParts(datacenter, worker) for [snowflake.Twitter]. It is
// otherwise as [WithNode].
func WithNodeParts(parts ...int64) Option {
	return func(c *config) { c.parts, c.option = append([]int64{}, parts...), "WithNodeParts" }
}

// WithClock sets the clock. The default is [monoclock.New].
func WithClock(clock Clock) Option {
	return func(c *config) { c.clock, c.ownClock = clock, true }
}

// WithLease has the generator issue IDs with the node numbers and in the times that
// l grants, so that they are unique across restarts and machines whatever any clock
// says. [*github.com/tickflake/tickflake/lease.Keeper] is the one to give. Its layout and
// clock are the generator's, so [WithNode] and [WithClock] cannot be combined with it,
// nor a layout that differs.
//
// Closing the generator gives the lease back.
func WithLease(l Lease) Option { return func(c *config) { c.lease, c.leased = l, true } }

// WithStrategy sets what happens when the next free slot lies ahead of the
// clock. The default is [strategies.Default]: wait up to one second.
func WithStrategy(s strategies.Strategy) Option { return func(c *config) { c.strategy = s } }

// WithSequenceStart sets where the sequence of a new tick begins. The default is
// [strategies.StartZero].
func WithSequenceStart(s strategies.SequenceStart) Option { return func(c *config) { c.start = s } }

// configure applies opts to the defaults and checks the result at the clock's
// time, which it returns along.
func configure(opts []Option) (config, time.Time, error) {
	c := config{
		layout:   snowflake.Default(),
		clock:    monoclock.New(),
		strategy: strategies.Default(),
	}
	fail := func(option string, err error) (config, time.Time, error) {
		return config{}, time.Time{}, &ConfigError{Option: option, Err: err}
	}
	for i, opt := range opts {
		if opt == nil {
			return fail("New", fmt.Errorf("option %d of %d %w", i+1, len(opts), errNil))
		}
		opt(&c)
	}
	if c.leased {
		if option, err := c.adopt(); err != nil {
			return fail(option, err)
		}
	}
	if isNil(c.clock) {
		return fail("WithClock", fmt.Errorf("clock %w: give one, such as monoclock.New()", errNil))
	}
	if err := strategies.Validate(c.strategy); err != nil {
		return fail("WithStrategy", err)
	}
	now := c.clock.Now()
	if err := c.layout.ValidateAt(now); err != nil {
		return fail("WithLayout", err)
	}
	if end := issuingEnd(c.layout); !now.Before(end) {
		return fail("WithClock", &EndOfTimeError{End: end})
	}
	if err := c.start.Validate(1 << c.layout.SequenceBits); err != nil {
		return fail("WithSequenceStart", err)
	}
	if c.parts != nil {
		node, err := c.layout.Node(c.parts...)
		if err != nil {
			return fail(c.option, err)
		}
		c.node = node
	}
	if err := c.layout.CheckNode(c.node); err != nil {
		return fail(c.option, err)
	}
	return c, now, nil
}

// adopt takes over what the lease decides, and returns the option that is at odds
// with it.
func (c *config) adopt() (option string, err error) {
	if isNil(c.lease) {
		return "WithLease", fmt.Errorf("lease %w: give one, such as that of lease.Claim", errNil)
	}
	if c.option != "" {
		return c.option, errors.New("the lease grants the node number: leave the option out, or choose the number where the lease is claimed")
	}
	layout := c.lease.Layout()
	if c.ownLayout && layout.String() != c.layout.String() {
		return "WithLayout", fmt.Errorf("the lease is for the layout %s: leave the option out, or claim a lease for %s", layout, c.layout)
	}
	if c.ownClock {
		return "WithClock", errors.New("the lease goes by a clock of its own: leave the option out, or give the clock to the lease, as by lease.WithClock")
	}
	c.layout, c.clock = layout, c.lease.Clock()
	return "", nil
}

// isNil reports whether c is nil or a nil pointer, which would fail only at its
// first use.
func isNil(c any) bool {
	if c == nil {
		return true
	}
	v := reflect.ValueOf(c)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// lastInstant is the last one that 64-bit nanoseconds since 1970 can tell.
var lastInstant = time.Unix(0, math.MaxInt64).UTC()

// issuingEnd is the first instant for which a generator issues no IDs: the
// layout's end, or the end of 64-bit nanoseconds since 1970 in the year 2262. A layout
// whose slots take all 63 bits does without its last tick, for the slot after that
// would look sealed.
func issuingEnd(l snowflake.Layout) time.Time {
	end := l.End()
	switch {
	case end.After(lastInstant):
		return lastInstant
	case l.TimeBits+l.SequenceBits == 63:
		return end.Add(-l.Tick)
	}
	return end
}

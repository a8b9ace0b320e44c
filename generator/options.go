package generator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/strategies"
)

// Option configures [New], [Open] or [OpenPast]. If it is not for all of these, its doc says so, or that of
// OpenPast. If an option is given twice, the last one holds.
type Option func(*config)

type config struct {
	layout   snowflake.Layout
	clock    monoclock.Interface // nil until it is made, unless WithClock was given
	within   base.Within
	log      *slog.Logger
	strategy strategies.Strategy
	start    strategies.SequenceStart
	below    uint64 // of start

	node   int64
	pinned bool // WithNode was given

	after *snowflake.ID // WithFloor, or nil
	begin uint64        // the first tick after that ID's

	lease               *lease.Keeper
	leased              bool // WithLease was given
	leaseOptions        []lease.Option
	past                pastConfig
	window              *window.Ticks // of a test, in place of a lease's
	ownLayout, ownClock bool          // WithLayout, WithClock were given
	ownLog              bool          // WithLogger was given
}

// WithLayout sets the layout of the IDs. The default is [snowflake.Default].
func WithLayout(l snowflake.Layout) Option {
	return func(c *config) { c.layout, c.ownLayout = l.Clone(), true }
}

// WithNode sets the node number, from 0 to the layout's largest. [snowflake.Layout.Node] composes it of its
// parts, as of datacenter and worker.
//
// In [Open] it pins the number that is claimed, and no ID repeats: see [lease.WithNode].
//
// In [New] it is a promise of the caller: no other process uses the number at the same time, and a process that
// starts with it has a clock later than the last ID of the one before. If the clock is stepped back and the
// process restarts, that promise is broken, and IDs repeat. It is fine for a program that runs once, and for
// tests. No log tells that the wall clock has drifted away: watch [Stats].Drift. Within a process, generators of one
// number and layout share one clock and issue no ID twice, unless they were given clocks by [WithClock] or run
// in bubbles of testing/synctest. If one borrows, the others find the clock behind.
func WithNode(n int64) Option {
	return func(c *config) { c.node, c.pinned = n, true }
}

// WithClock sets the clock. The default is a [monoclock.New], which all generators of one number of [WithNode]
// share. With this option they share nothing: in a process, use a number for one generator only.
func WithClock(clock monoclock.Interface) Option {
	return func(c *config) { c.clock, c.ownClock = clock, true }
}

// WithLogger sets the logger of [Open] and [OpenPast]: of the store, of the lease, and of a wait for the clock. The
// default is [slog.Default]. [New] refuses it, since nothing but a lease logs: see [lease.WithLogger].
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log, c.ownLog = log, true } }

// WithWallWithin has [Open] wait for the machine's wall clock before it opens the store: see [lease.WithWallWithin].
// [New] refuses it: call [monoclock.AwaitWall] before.
func WithWallWithin(most time.Duration) Option {
	return func(c *config) { c.within = base.Within{Most: most, Given: true} }
}

// WithLease has the generator issue IDs with the node numbers and in the ticks that the
// keeper k is granted. So the IDs are unique across restarts and machines, whatever the
// clocks say. The keeper's layout and clock are the generator's, so [WithNode] and
// [WithClock] cannot be combined with it, nor a layout that differs.
//
// Closing the generator closes the keeper. A keeper serves one generator.
func WithLease(k *lease.Keeper) Option { return func(c *config) { c.lease, c.leased = k, true } }

// WithLeaseOptions passes options to the lease that [Open] claims, such as [lease.WithWindow]. Give the layout, the
// clock, the node number and the logger by the options of this package: if a lease option gives one too, there is no
// error, and the lease takes that one.
func WithLeaseOptions(options ...lease.Option) Option {
	return func(c *config) { c.leaseOptions = append(c.leaseOptions, options...) }
}

// maxAfterLead is how far the ticks after the ID of WithFloor may begin ahead of the clock.
const maxAfterLead = 10 * time.Second

// WithFloor has the generator issue only IDs that are larger than id as integers, whatever the node number:
// give it the largest ID that another system has issued under this layout. The first ID has a later tick than
// id.
//
// If id lies ahead of the clock, by up to 10 seconds, the strategy decides as for a clock that is behind. If it
// lies further ahead, New and Open refuse it with a [*stores.OptionError], before anything is opened: an ID of
// another layout, or of a clock that was far ahead, would hold all IDs up.
func WithFloor(id snowflake.ID) Option {
	return func(c *config) { c.after = &id }
}

// WithStrategy sets what happens when the next free slot lies ahead of the
// clock. The default is [strategies.Default]: wait up to one second.
func WithStrategy(s strategies.Strategy) Option { return func(c *config) { c.strategy = s } }

// WithSequenceStart sets where the sequence of a new tick begins. The default is
// [strategies.StartZero].
func WithSequenceStart(s strategies.SequenceStart) Option { return func(c *config) { c.start = s } }

// configure applies opts to the defaults.
func configure(opts []Option) (config, error) {
	c := config{layout: snowflake.Default(), strategy: strategies.Default(), log: slog.Default()}
	for i, opt := range opts {
		if opt == nil {
			return config{}, &stores.OptionError{Option: "New", Err: fmt.Errorf("option %d of %d %w", i+1, len(opts), drive.ErrNil)}
		}
		opt(&c)
	}
	if c.log == nil {
		return config{}, &stores.OptionError{Option: "WithLogger", Err: fmt.Errorf("logger %w: give slog.New(slog.DiscardHandler) for silence", drive.ErrNil)}
	}
	return c, nil
}

// validate checks the options, but for what depends on the time.
func (c *config) validate(ctx context.Context) error {
	fail := func(option string, err error) error { return &stores.OptionError{Option: option, Err: err} }
	if c.leased {
		if option, err := c.adopt(); err != nil {
			return fail(option, err)
		}
	}
	if c.past != (pastConfig{}) {
		return fail("WithPastUnit, WithPastMemory", errors.New("they are for OpenPast: leave them out"))
	}
	if (c.ownClock || c.leased) && drive.IsNil(c.clock) {
		return fail("WithClock", fmt.Errorf("clock %w: give one, such as monoclock.New()", drive.ErrNil))
	}
	if err := c.within.Validate(ctx, c.ownClock); err != nil {
		return err
	}
	if err := strategies.Validate(c.strategy); err != nil {
		return fail("WithStrategy", err)
	}
	if err := c.layout.Validate(); err != nil {
		return fail("WithLayout", err)
	}
	below, err := seam.StartBound(c.start, 1<<c.layout.SequenceBits)
	if err != nil {
		return fail("WithSequenceStart", err)
	}
	c.below = below
	if _, err := c.layout.Compose(c.layout.Epoch, c.node, 0); err != nil {
		return fail("WithNode", err)
	}
	return nil
}

// check checks the clock, and what depends on its time, and returns that.
func (c *config) check() (time.Time, error) {
	now, option, err := base.Check(c.clock, c.layout)
	if end := issuingEnd(c.layout); err == nil && !now.Before(end) {
		option, err = "WithClock", endOfTime(end)
	}
	if err == nil {
		option, err = "WithFloor", c.resolveAfter(now)
	}
	if err != nil {
		return time.Time{}, &stores.OptionError{Option: option, Err: err}
	}
	return now, nil
}

// resolveAfter sets the first tick that is issued, if WithFloor was given.
func (c *config) resolveAfter(now time.Time) error {
	if c.after == nil {
		return nil
	}
	id := *c.after
	d, err := c.layout.Decode(id)
	if err != nil {
		return err
	}
	if lead := d.Time.Add(c.layout.Tick).Sub(now); lead > maxAfterLead {
		return fmt.Errorf("IDs above %d begin %s ahead of the clock (limit %s): check its layout, the clock that issued it, and this clock", id, span.Text(lead), maxAfterLead)
	}
	c.begin = uint64(id)>>(c.layout.NodeBits+c.layout.SequenceBits) + 1
	return nil
}

// errNoNode says that no option gives the node number.
var errNoNode = errors.New("no node number: call generator.Open with a directory or a store's URL, which claims one; or give WithLease; or, in a program that runs once and alone, WithNode(0)")

// adopt takes the layout and the clock of the lease, or returns the option that
// contradicts the lease.
func (c *config) adopt() (option string, err error) {
	if c.lease == nil {
		return "WithLease", fmt.Errorf("lease %w: give the keeper that lease.Claim returns", drive.ErrNil)
	}
	if c.pinned {
		return "WithNode", errors.New("the lease grants the node number: leave the option out, or choose the number where the lease is claimed")
	}
	layout := c.lease.Layout()
	if c.ownLayout && layout.String() != c.layout.String() {
		return "WithLayout", fmt.Errorf("the lease is for the layout %s: leave the option out, or claim a lease for %s", layout, c.layout)
	}
	if c.ownClock {
		return "WithClock", errors.New("the lease has its own clock: leave the option out, or give the clock to the lease by lease.WithClock")
	}
	c.layout, c.clock = layout, c.lease.Clock()
	return "", nil
}

// lastInstant is the last instant that 64-bit nanoseconds since 1970 can express.
var lastInstant = time.Unix(0, math.MaxInt64).UTC()

// issuingEnd is the first instant for which a generator issues no IDs: the
// layout's end, or the end of 64-bit nanoseconds since 1970 in the year 2262. A layout
// whose slots take all 63 bits loses its last tick, because the slot after that
// tick would look sealed.
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

package lease

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/vmclock"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// DefaultWindow is the length of a grant, unless [WithWindow] says otherwise.
// The grant is extended when a third of it is used. So an outage of the store of 20
// seconds has no effect, a full fleet of 1,024 nodes writes 103 times a second, and a
// node number whose process crashed stays unused for up to a minute, while the next process
// takes another.
const DefaultWindow = 30 * time.Second

// DefaultLocalWindow is [DefaultWindow] for a store with locks, such as a directory. It has no network that
// can fail, and after a crash a process may start again at once with the same number.
const DefaultLocalWindow = 3 * time.Second

// DefaultTimeout is how long each operation of the store may take, unless [WithTimeout]
// says otherwise.
const DefaultTimeout = drive.DefaultTimeout

// Option configures a [Keeper] in [Claim]. When an option is given twice, the last
// one holds.
type Option func(*config)

type config struct {
	traits stores.Traits // of the store

	timeline
	clock   monoclock.Interface
	given   bool // WithClock was given
	within  base.Within
	period  time.Duration // the window
	window  uint64        // the same in ticks
	timeout time.Duration // of one operation

	pin    *int64 // of WithNode, or nil
	node   int64  // the same, or -1
	owner  string
	log    *slog.Logger
	strict bool
	device string // see WithVMClock
	page   *vmclock.Page

	elapsed func() time.Duration
	ownTime bool // elapsed is that of a clock that was given
	after   func(time.Duration) <-chan time.Time
}

// WithLayout sets the layout of the IDs, of ticks and of node numbers.
// The default is [snowflake.Default]. All processes of a fleet must have the
// same layout.
func WithLayout(l snowflake.Layout) Option { return func(c *config) { c.layout = l.Clone() } }

// WithClock sets the clock of the lease and of its generator. The default is
// [monoclock.New]. No clock can break uniqueness; the clock decides the times in IDs.
func WithClock(clock monoclock.Interface) Option {
	return func(c *config) { c.clock, c.given = clock, true }
}

// WithWallWithin has [Claim] wait until the machine's wall clock is off by no more than most, by the kernel's word
// ([monoclock.WallError]), before it makes its clock: 3 seconds suit a host that synchronises its clock. Claim waits until its context's
// deadline, and fails without one. Its error then wraps [monoclock.ErrWall]. Where the kernel says
// nothing, as on macOS, Claim logs a warning and does not wait. It cannot be combined with [WithClock].
func WithWallWithin(most time.Duration) Option {
	return func(c *config) { c.within = base.Within{Most: most, Given: true} }
}

// WithWindow sets the length of a grant: from 6 ticks to 366 days. The store is
// written once per third of it, and an outage of up to two thirds has no effect. After a
// crash, the rest of the grant is never issued. The default is [DefaultWindow], or
// [DefaultLocalWindow] for a store with locks, or what the [stores.Traits] say.
func WithWindow(d time.Duration) Option { return func(c *config) { c.period = d } }

// WithTimeout sets how long each operation of the store may take: [DefaultTimeout] by
// default.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithNode claims this node number, instead of any free one. A number that the layout does not have is refused
// before any call of the store, and one that the store's [Fleet] does not have by the claim. On a store with
// locks, such as a directory, the claim fails while another living process holds the number. On other stores it
// takes the number over: the last to start wins, and the process that held it ends with an error that wraps
// [ErrLost] when its grant is used up. No ID is issued twice even so.
//
// After a crash the number begins where the grant of the crashed process ended, up to a window ahead of the
// clock, and a window further with each crash in a row. Until the clock gets there, also after a clean stop,
// the strategy decides about every call; with a free number there is no such wait.
func WithNode(node int64) Option { return func(c *config) { c.pin = &node } }

// WithOwner sets the text that shows people the holder of a node number, of at most
// 200 bytes. The default is the host name and the process ID.
func WithOwner(owner string) Option { return func(c *config) { c.owner = owner } }

// WithLogger sets the logger for changes of the lease's state. The default is
// [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// WithStrictFleetCheck makes Claim fail with an error that wraps [ErrSkew] if it meets a number, held or released,
// whose limit lies more than a minute and two windows ahead of the clock. Without this option, the Keeper logs a
// warning: this clock is behind, or an earlier one was ahead. If this clock is right, claim without this option:
// nothing but time takes that limit away.
func WithStrictFleetCheck() Option { return func(c *config) { c.strict = true } }

// WithVMClock names the VMClock device by which the Keeper notices that its memory is a copy, as of a virtual
// machine's snapshot. Then it does what [Keeper.Restored] does, before another ID is returned. "off" is none.
// The default, "auto", is the first /dev/vmclock* that this user may read, if there is one; [Stats] says so.
// All systems but Linux have none. A named device that cannot be used is an error.
func WithVMClock(device string) Option { return func(c *config) { c.device = device } }

// checkStore returns an error if the store of the function is nil.
func checkStore(function string, store stores.Store) error {
	if drive.IsNil(store) {
		return refuse(function, "store %w: give the one that stores.Open returns", drive.ErrNil)
	}
	return nil
}

// CheckOptions returns the [*stores.OptionError] with which [Claim] refuses options whatever the store and the
// time are, such as a window that is too short. Call it before you open a store. Of ctx it looks only at the
// deadline: whether there is one. It opens the VMClock device, as Claim does.
func CheckOptions(ctx context.Context, options ...Option) error {
	_, err := parse(ctx, stores.Traits{}, options)
	return err
}

// parse checks all that depends on neither the store nor the time.
func parse(ctx context.Context, traits stores.Traits, options []Option) (config, error) {
	c := config{traits: traits, node: -1, timeline: timeline{layout: snowflake.Default()},
		timeout: DefaultTimeout, owner: self(), log: slog.Default()}
	for i, option := range options {
		if option == nil {
			return c, refuse("Claim", "option %d of %d %w", i+1, len(options), drive.ErrNil)
		}
		option(&c)
	}
	if c.given && drive.IsNil(c.clock) {
		return c, refuse("WithClock", "clock %w: give one, such as monoclock.New()", drive.ErrNil)
	}
	if c.log == nil {
		return c, refuse("WithLogger", "logger %w: give slog.New(slog.DiscardHandler) for silence", drive.ErrNil)
	}
	if err := c.layout.Validate(); err != nil {
		return c, refuse("WithLayout", "%w", err)
	}
	c.spec = c.layout.String()
	if c.period == 0 {
		c.period = DefaultWindow
		if c.locking() {
			c.period = DefaultLocalWindow
		}
		c.period = cmp.Or(c.traits.Window, c.period)
		c.period = max(c.period, 6*c.layout.Tick)
	}
	if c.period < 6*c.layout.Tick || c.period > maxWindow {
		return c, refuse("WithWindow", "window of %s: want %s to %s", c.period, 6*c.layout.Tick, maxWindow)
	}
	c.window = uint64(c.period / c.layout.Tick)
	if c.timeout <= 0 {
		return c, refuse("WithTimeout", "timeout of %s: want more than none", c.timeout)
	}
	if len(c.owner) > maxOwner {
		return c, refuse("WithOwner", "%d bytes: want at most %d", len(c.owner), maxOwner)
	}
	if c.pin != nil {
		c.node = *c.pin
		_, err := c.layout.Compose(c.layout.Epoch, c.node, 0)
		if err == nil && c.node >= c.nodes() {
			err = fmt.Errorf("node %d is %w: a store keeps numbers from 0 to %d", c.node, snowflake.ErrRange, c.nodes()-1)
		}
		if err != nil {
			return c, refuse("WithNode", "%w", err)
		}
	}
	if n := c.longest(); n > stores.MaxValue {
		return c, refuse("WithOwner", "with this owner and the layout %s a cell takes %d bytes: want at most %d", c.spec, n, stores.MaxValue)
	}
	if err := c.within.Validate(ctx, c.given); err != nil {
		return c, err
	}
	var err error
	if c.page, err = vmclock.Open(c.device, c.log); err != nil {
		return c, refuse("WithVMClock", "%w", err)
	}
	return c, nil
}

func configure(ctx context.Context, store stores.Store, options []Option) (config, error) {
	c, err := parse(ctx, store.Traits(), options)
	if err != nil {
		return c, err
	}
	if c.clock, err = base.Await(ctx, c.clock, c.within, c.layout, c.log); err != nil {
		return c, err
	}
	if _, option, err := base.Check(c.clock, c.layout); err != nil {
		return c, refuse(option, "%w", err)
	}
	if c.after, c.elapsed, c.ownTime = base.Waiting(c.clock); c.after == nil {
		c.after = time.After
	}
	return c, nil
}

// longest is the length of the longest record. In JSON, a character of the owner may take
// more bytes than in the text.
func (c *config) longest() int {
	const token = "0123456789abcdef01234567"
	return len(cell.Node{
		Holder: token, Owner: c.owner, Floor: math.MaxUint64, Limit: math.MaxUint64, Until: timeFormat,
		Window: math.MaxUint64, Write: token, Layout: c.spec,
	}.Encode())
}

const (
	maxWindow = 366 * 24 * time.Hour
	maxOwner  = 200
)

// locking reports whether the store knows which processes live.
func (c *config) locking() bool { return c.traits.TryLock != nil }

// pinned reports whether WithNode has fixed the node number.
func (c *config) pinned() bool { return c.node >= 0 }

// tick is the clock's tick.
func (c *config) tick() uint64 { return c.tickOf(c.clock.Now()) }

// self describes this process to people.
func self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%.150s, process %d", host, os.Getpid())
}

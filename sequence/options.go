package sequence

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/vmclock"
	"github.com/tickflake/tickflake/stores"
)

// Option configures a [Sequence] in [Open]. When an option is given twice, the last one
// holds.
type Option func(*config)

type config struct {
	remote
	timeout    time.Duration
	outage     time.Duration
	log        *slog.Logger
	definition *Definition // or nil
	named      bool        // a function has named the period that is opened

	device string // see WithVMClock
	page   *vmclock.Page

	elapsed func() time.Duration // since a fixed instant; it never goes back
	after   func(time.Duration) <-chan time.Time
}

// WithDefinition makes [Open] create the sequence if there is none, as [Create] does. One that was deleted
// stays deleted.
func WithDefinition(d Definition) Option { return func(c *config) { c.definition = &d } }

// WithTimeout sets how long each operation of the store may take, and how long a call without
// a deadline waits for a number: 2 seconds by default.
func WithTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithOutage sets for how long an outage of the store is to have no effect in segmented
// mode: the process reserves its present rate times d, within the steps of the
// [Definition]. The default is 10 seconds. With 0 it reserves nothing ahead of need: a
// call that finds no number reserves a segment. That suits a command that takes a few numbers.
func WithOutage(d time.Duration) Option { return func(c *config) { c.outage = d } }

// WithLogger sets the logger for changes of the sequence's state: the store fails, answers
// again, went back. The default is [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// WithVMClock is WithVMClock of package lease for a Sequence: it names the device by which the Sequence notices that
// its memory is a copy, and then does what [Sequence.Restored] does, before another number is returned. "off" is none.
func WithVMClock(device string) Option { return func(c *config) { c.device = device } }

func configure(store stores.Store, name string, options []Option) (*config, error) {
	began := time.Now()
	c := &config{timeout: drive.DefaultTimeout, outage: 10 * time.Second, log: slog.Default(), elapsed: func() time.Duration { return time.Since(began) }, after: time.After}
	fail := func(option string, err error) (*config, error) {
		return nil, &stores.OptionError{Option: option, Err: err}
	}
	for i, option := range options {
		if option == nil {
			return fail("Open", fmt.Errorf("option %d of %d %w", i+1, len(options), drive.ErrNil))
		}
		option(c)
	}
	if c.timeout <= 0 {
		return fail("WithTimeout", fmt.Errorf("timeout of %s: want more than 0", c.timeout))
	}
	if c.outage < 0 {
		return fail("WithOutage", fmt.Errorf("outage of %s: want 0 or more", c.outage))
	}
	if c.log == nil {
		return fail("WithLogger", fmt.Errorf("logger %w: give slog.New(slog.DiscardHandler) for silence", drive.ErrNil))
	}
	var err error
	if c.remote, err = remoteOf(store, name, c.timeout); err != nil {
		return nil, err
	}
	if c.page, err = vmclock.Open(c.device, c.log); err != nil {
		return fail("WithVMClock", err)
	}
	return c, nil
}

// ValidateName returns an error unless name can name a sequence: 1 to 64 lower-case ASCII letters, digits,
// dots, hyphens and underscores, but not "." or "..". Capital letters are refused, since some databases and
// file systems ignore case.
func ValidateName(name string) error {
	const longest = 64
	if len(name) == 0 || len(name) > longest {
		return &stores.OptionError{Option: "name", Err: fmt.Errorf("%.20q has %d bytes, want 1 to %d", name, len(name), longest)}
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_' {
			return &stores.OptionError{Option: "name", Err: fmt.Errorf("%q holds %q, want lower-case ASCII letters, digits, dots, hyphens and underscores", name, r)}
		}
	}
	if name == "." || name == ".." {
		return &stores.OptionError{Option: "name", Err: fmt.Errorf("%q: want a name", name)}
	}
	return nil
}

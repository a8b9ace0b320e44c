package generatortest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// ClockKind is the clock that a tickflake generator reads.
type ClockKind string

const (
	// Raw is the wall clock: every step reaches the strategy.
	Raw ClockKind = "raw"
	// Mono is a monoclock: no step reaches the strategy, and a suspend is counted.
	Mono ClockKind = "mono"
	// Resync is a monoclock that also catches up with a wall that is ahead, by
	// [monoclock.WithResync] with a threshold of a second and a limit of a day.
	Resync ClockKind = "resync"
)

// ClockKinds lists all kinds.
var ClockKinds = []ClockKind{Raw, Mono, Resync}

// ParseClockKind reads a [ClockKind]. The error for any other text quotes it and lists
// the kinds.
func ParseClockKind(text string) (ClockKind, error) {
	if kind := ClockKind(text); slices.Contains(ClockKinds, kind) {
		return kind, nil
	}
	return "", fmt.Errorf("clock %q: want raw, mono or resync", text)
}

// Of returns the clock of this kind for a process that is started now on a faulty clock, a
// [*clocktest.Virtual] or one that embeds it: the faulty clock itself, or a new monoclock that reads it.
func (k ClockKind) Of(fault interface {
	monoclock.Interface
	monoclock.Source
}) monoclock.Interface {
	switch k {
	case Mono:
		return monoclock.New(monoclock.WithSource(fault))
	case Resync:
		return monoclock.New(monoclock.WithSource(fault), monoclock.WithResync(time.Second, 24*time.Hour))
	}
	return fault
}

// Tickflake returns the [Subject] for tickflake's own generator with a strategy, a
// clock and options. Its claim follows from the strategy; a strategy of your own may do anything.
// Its layout is the default one with 4 bits of sequence, so that 16 IDs use up a tick, unless the
// options give another.
//
// Its node number is fixed, so it keeps no state across a restart. For a generator
// under a lease, which does, see [Leased].
func Tickflake(s strategies.Strategy, kind ClockKind, opts ...generator.Option) Subject[snowflake.ID] {
	layout := snowflake.Default()
	layout.SequenceBits = 4
	opts = append([]generator.Option{generator.WithStrategy(s), generator.WithLayout(layout), generator.WithNode(7)}, opts...)
	start := func(clock monoclock.Interface) (*generator.Generator, error) {
		return generator.New(append(opts[:len(opts):len(opts)], generator.WithClock(clock))...)
	}
	// Ask a generator, since the options may give another layout, perhaps one whose
	// time is over or has not begun. If the options are wrong, New returns the error.
	gen, err := start(clocktest.NewVirtual(noon))
	for year := firstWall.Year(); err != nil && year < lastWall.Year(); year++ {
		gen, err = start(clocktest.NewVirtual(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
	if err == nil {
		layout = gen.Layout()
	}
	exhausted, behind := seam.LimitsOf(s)
	epoch, tick, shift := layout.Epoch, layout.Tick, layout.NodeBits+layout.SequenceBits
	end := layout.End()
	if layout.TimeBits+layout.SequenceBits == 63 {
		end = end.Add(-tick) // of such a layout the last tick is not issued
	}
	return Subject[snowflake.ID]{
		Name: fmt.Sprintf("%v on %s", s, kind),
		New: func(fault *clocktest.Virtual) (Process[snowflake.ID], error) {
			clock := kind.Of(fault)
			gen, err := start(clock)
			if err != nil {
				return Process[snowflake.ID]{}, err
			}
			return Process[snowflake.ID]{
				Next:   gen.Next,
				NextN:  gen.NextN,
				Stream: func() func() (snowflake.ID, error) { return gen.Stream().Next },
				Now:    clock.Now,
				Close:  gen.Close,
			}, nil
		},
		Claim: Claim{Exhausted: boundOf(exhausted), Behind: boundOf(behind)},
		// As Layout.Decode does, without its checks.
		Time:       func(id snowflake.ID) time.Time { return epoch.Add(time.Duration(id>>shift) * tick) },
		Tick:       tick,
		Epoch:      epoch,
		End:        end,
		CheckError: checkTickflakeError,
	}
}

func boundOf(l seam.Limits) Bound {
	if l.Foreign {
		return Bound{Wait: Forever, Borrow: Forever}
	}
	return Bound{Wait: l.Wait, Borrow: l.Borrow}
}

// checkTickflakeError returns what is wrong with an error of a tickflake generator that
// is not closed.
func checkTickflakeError(err error) error {
	var lead *generator.LeadError
	if errors.Is(err, lease.ErrEndOfTime) || errors.As(err, &lead) && lead.Lead > 0 &&
		errors.Is(err, generator.ErrBehind) != errors.Is(err, generator.ErrExhausted) && strings.Contains(err.Error(), span.Text(lead.Lead)) {
		return nil
	}
	return errors.New("it is neither ErrEndOfTime nor a LeadError that has one cause and says by how much")
}

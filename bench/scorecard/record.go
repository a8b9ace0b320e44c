package scorecard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// noon is the beginning of every scenario.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// record is what the processes of a scenario did, and the bounds that they are held to.
type record struct {
	generatortest.Result
	strategy     strategies.Strategy
	wait, borrow time.Duration // the bounds of the strategy, whatever the cause
	issued       map[snowflake.ID]bool
}

func newRecord(s strategies.Strategy) *record {
	r := &record{strategy: s, issued: map[snowflake.ID]bool{}}
	for _, cause := range []strategies.Cause{strategies.Exhausted, strategies.Behind} {
		wait, borrow := strategies.Limits(s, cause)
		r.wait, r.borrow = max(r.wait, wait), max(r.borrow, borrow)
	}
	return r
}

func (r *record) violate(kind generatortest.Kind, format string, args ...any) {
	if r.Violated == nil {
		r.Violated = map[generatortest.Kind]int{}
	}
	r.Violated[kind]++
	if r.Violated[kind] <= generatortest.MaxViolations {
		r.Violations = append(r.Violations, generatortest.Violation{Kind: kind, Detail: fmt.Sprintf(format, args...)})
	}
}

// process is one with a lease, on a clock that advances when a caller waits.
type process struct {
	clock  *clocktest.Virtual
	keeper *lease.Keeper
	gen    *generator.Generator
	last   snowflake.ID
}

// start starts a process on a store, with a monoclock. No goroutine of its own asks the
// store: [record.call] does.
func (r *record) start(ctx context.Context, clock *clocktest.Virtual, store lease.Store, options ...lease.Option) (*process, error) {
	clock.AutoAdvance(true)
	options = append([]lease.Option{lease.WithClock(generatortest.Mono.Of(clock)), lease.WithPolling(), lease.WithLogger(slog.New(slog.DiscardHandler))}, options...)
	keeper, err := lease.Claim(ctx, store, options...)
	if err != nil {
		return nil, err
	}
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(r.strategy))
	if err != nil {
		return nil, errors.Join(err, keeper.Close())
	}
	return &process{clock: clock, keeper: keeper, gen: gen}, nil
}

// call has a process issue an ID, and judges it. It reports whether there is one.
func (r *record) call(p *process) bool {
	p.keeper.Poll(context.Background())
	began := p.clock.Passed()
	id, err := p.gen.Next()
	stall := p.clock.Passed() - began
	r.LongestStall = max(r.LongestStall, stall)
	if stall > r.wait {
		r.violate(generatortest.Stall, "a call took %s; at most %s, as claimed", stall, r.wait)
	}
	if err != nil {
		r.Errors++
		var none *generator.GrantError
		var lead *generator.LeadError
		if !errors.As(err, &none) && !errors.As(err, &lead) {
			r.violate(generatortest.WrongError, "%v", err)
		}
		return false
	}
	r.Issued++
	if r.issued[id] {
		r.Duplicates++
		r.violate(generatortest.Duplicate, "%d was issued before", id)
	}
	r.issued[id] = true
	if id <= p.last {
		r.Disorder++
		r.violate(generatortest.Disorder, "%d is not above %d, which the process had issued", id, p.last)
	}
	p.last = id
	d, err := p.gen.Layout().Decode(id)
	if err != nil {
		r.violate(generatortest.WrongError, "%d cannot be decoded: %v", id, err)
		return true
	}
	lead := d.Time.Sub(p.keeper.Clock().Now())
	r.LargestLead = max(r.LargestLead, lead)
	if lead > r.borrow {
		r.violate(generatortest.Lead, "%d is %s ahead of the clock; at most %s, as claimed", id, lead, r.borrow)
	}
	return true
}

// calls has a process issue an ID in each period, for a while.
func (r *record) calls(p *process, every, while time.Duration) {
	for end := p.clock.Passed() + while; p.clock.Passed() < end; p.clock.Advance(every) {
		r.call(p)
	}
}

// failed records that the scenario could not be carried out.
func (r *record) failed(err error) {
	r.violate(generatortest.NoStart, "%v", err)
}

package oteltickflake

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
)

// Observe reports a generator's [generator.Stats], and its node number, at each collection
// of the metrics. Issuing an ID costs nothing more. Unregister ends it; do so when the
// generator is closed, or its last values go on being reported, and so does the end of
// its grant.
//
// Observe a generator once, or Unregister before doing so again: observed twice with the
// same attributes, its counters are reported doubled, and go backwards when one of the
// two ends.
//
// The error is that gen is nil, or comes from the provider.
func Observe(gen *generator.Generator, options ...Option) (metric.Registration, error) {
	if gen == nil {
		return nil, fmt.Errorf("oteltickflake: Observe: generator %w: give one that generator.New made", errNil)
	}
	c := configure(options)
	m, set := newMeter(c), c.set()
	waits := m.counter("tickflake.generator.waits", "{wait}", "Reservations of IDs that waited.")
	waited := m.total("tickflake.generator.wait_time", "Time that reservations of IDs waited, added up.")
	borrowed := m.counter("tickflake.generator.borrowed_ticks", "{tick}", "Ticks from which IDs were issued before the clock reached them.")
	rejections := m.counter("tickflake.generator.rejections", "{call}", "Calls that the strategy rejected.")
	lead := m.span("tickflake.generator.lead", "How far the last ID is ahead of the clock.")
	maxLead := m.span("tickflake.generator.max_lead", "The largest lead since the start.")
	granted := m.span("tickflake.generator.granted", "From the clock to the end of what may be issued: the lease's grant, or the layout's time.")
	drift := m.span("tickflake.generator.drift", "The wall clock minus the generator's.")
	node := m.number("tickflake.generator.node", "{node}", "The node number of the IDs.")
	return m.register(func(o metric.Observer) {
		s := gen.Stats()
		o.ObserveInt64(waits, count(s.Waits), set)
		o.ObserveFloat64(waited, seconds(s.Waited), set)
		o.ObserveInt64(borrowed, count(s.BorrowedTicks), set)
		o.ObserveInt64(rejections, count(s.Rejections), set)
		o.ObserveFloat64(lead, seconds(s.Lead), set)
		o.ObserveFloat64(maxLead, seconds(s.MaxLead), set)
		o.ObserveFloat64(granted, seconds(s.Granted), set)
		o.ObserveFloat64(drift, seconds(s.Drift), set)
		o.ObserveInt64(node, gen.Node(), set)
	})
}

// ObserveKeeper reports a keeper's [lease.Stats] at each collection of the metrics. It
// never waits for the store. When the keeper is closed, what it holds is not reported any
// longer, and what it counted is, until Unregister ends it.
//
// As with [Observe], do so once for each keeper, or Unregister before doing so again.
//
// The error is that keeper is nil, or comes from the provider.
func ObserveKeeper(keeper *lease.Keeper, options ...Option) (metric.Registration, error) {
	if keeper == nil {
		return nil, fmt.Errorf("oteltickflake: ObserveKeeper: keeper %w: give one that lease.Claim returned", errNil)
	}
	c := configure(options)
	m, set := newMeter(c), c.set()
	claims := m.counter("tickflake.lease.claims", "{claim}", "Node numbers claimed.")
	extensions := m.counter("tickflake.lease.extensions", "{extension}", "Grants extended.")
	conflicts := m.counter("tickflake.lease.conflicts", "{conflict}", "Node numbers lost to other processes.")
	releases := m.counter("tickflake.lease.releases", "{release}", "Node numbers given back.")
	failures := m.counter("tickflake.lease.failures", "{failure}", "Operations of the store that failed, and cells that could not be read.")
	skew := m.span("tickflake.lease.skew", "How far the clock was ahead of the fleet's at the last claim, once others that are alive confirm it; below 0, behind.")
	remaining := m.span("tickflake.lease.remaining", "From the clock to the end of the grant.")
	window := m.span("tickflake.lease.window", "How much time is granted at once.")
	return m.register(func(o metric.Observer) {
		s := keeper.Stats()
		o.ObserveInt64(claims, count(s.Claims), set)
		o.ObserveInt64(extensions, count(s.Extensions), set)
		o.ObserveInt64(conflicts, count(s.Conflicts), set)
		o.ObserveInt64(releases, count(s.Releases), set)
		o.ObserveInt64(failures, count(s.Failures), set)
		if errors.Is(keeper.Err(), lease.ErrClosed) {
			return
		}
		o.ObserveFloat64(skew, seconds(s.Skew), set)
		o.ObserveFloat64(remaining, seconds(s.Remaining), set)
		o.ObserveFloat64(window, seconds(s.Window), set)
	})
}

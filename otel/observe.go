package oteltickflake

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
)

// Observe reports a generator's [generator.Stats] and node number, and if it has a lease
// the [lease.Stats], at each collection of the metrics. It never waits for the store, and
// issuing an ID costs no more than before. When the generator is closed, its grant is no longer
// reported. Its counters are, until Unregister.
//
// Observe a generator once, or Unregister before doing so again: two reports with the same
// attributes add up to double counters.
//
// The error says that gen is nil, or is one of the provider.
func Observe(gen *generator.Generator, options ...Option) (metric.Registration, error) {
	if gen == nil {
		return nil, fmt.Errorf("oteltickflake: Observe: generator %w: give one that generator.Open or generator.New returned", errNil)
	}
	c := configure(options)
	m := newMeter(c, c.set())
	parts := []func(metric.Observer){m.generator(gen)}
	if keeper := gen.Keeper(); keeper != nil {
		parts = append(parts, m.lease(keeper))
	}
	return m.register(parts...)
}

// generator makes the instruments of a generator and returns their callback.
func (m *meter) generator(gen *generator.Generator) func(metric.Observer) {
	waits := m.counter("tickflake.generator.waits", "{wait}", "Reservations of IDs that waited.")
	waited := m.total("tickflake.generator.wait_time", "Time that reservations of IDs waited, added up.")
	borrowed := m.counter("tickflake.generator.borrowed_ticks", "{tick}", "Ticks from which IDs were issued before the clock reached them.")
	rejections := m.counter("tickflake.generator.rejections", "{call}", "Calls that the strategy rejected.")
	lead := m.span("tickflake.generator.lead", "How far the last ID is ahead of the clock.")
	maxLead := m.span("tickflake.generator.max_lead", "The largest lead since the start.")
	granted := m.span("tickflake.generator.granted", "From the clock to the limit of the lease's grant, or of the layout's time.")
	drift := m.span("tickflake.generator.drift", "The wall clock minus the generator's.")
	node := m.number("tickflake.generator.node", "{node}", "The node number of the IDs.")
	return func(o metric.Observer) {
		s := gen.Stats()
		o.ObserveInt64(waits, count(s.Waits), m.set)
		o.ObserveFloat64(waited, s.Waited.Seconds(), m.set)
		o.ObserveInt64(borrowed, count(s.BorrowedTicks), m.set)
		o.ObserveInt64(rejections, count(s.Rejections), m.set)
		o.ObserveFloat64(lead, s.Lead.Seconds(), m.set)
		o.ObserveFloat64(maxLead, s.MaxLead.Seconds(), m.set)
		o.ObserveFloat64(granted, s.Granted.Seconds(), m.set)
		o.ObserveFloat64(drift, s.Drift.Seconds(), m.set)
		o.ObserveInt64(node, gen.Node(), m.set)
	}
}

// lease makes the instruments of a keeper and returns their callback.
func (m *meter) lease(keeper *lease.Keeper) func(metric.Observer) {
	claims := m.counter("tickflake.lease.claims", "{claim}", "Node numbers claimed.")
	extensions := m.counter("tickflake.lease.extensions", "{extension}", "Grants extended.")
	conflicts := m.counter("tickflake.lease.conflicts", "{conflict}", "Node numbers lost to other processes.")
	releases := m.counter("tickflake.lease.releases", "{release}", "Node numbers released.")
	failures := m.counter("tickflake.lease.failures", "{failure}", "Operations of the store that failed, and cells that could not be read.")
	wentBack := m.counter("tickflake.lease.store_went_back", "{time}", "Times that the store had lost acknowledged writes.")
	pauses := m.counter("tickflake.lease.pauses", "{pause}", "Times that the process or its machine was stopped until its grant had ended.")
	skew := m.span("tickflake.lease.skew", "How far the clock was ahead of the fleet's at the last claim, once others that are alive confirm it; below 0, behind.")
	remaining := m.span("tickflake.lease.remaining", "From the clock to the limit of the grant.")
	window := m.span("tickflake.lease.window", "The length of a grant.")
	return func(o metric.Observer) {
		s := keeper.Stats()
		o.ObserveInt64(claims, count(s.Claims), m.set)
		o.ObserveInt64(extensions, count(s.Extensions), m.set)
		o.ObserveInt64(conflicts, count(s.Conflicts), m.set)
		o.ObserveInt64(releases, count(s.Releases), m.set)
		o.ObserveInt64(failures, count(s.Failures), m.set)
		o.ObserveInt64(wentBack, count(s.WentBack), m.set)
		o.ObserveInt64(pauses, count(s.Pauses), m.set)
		if errors.Is(keeper.Err(), lease.ErrClosed) {
			return
		}
		o.ObserveFloat64(skew, s.Skew.Seconds(), m.set)
		o.ObserveFloat64(remaining, s.Remaining.Seconds(), m.set)
		o.ObserveFloat64(window, s.Window.Seconds(), m.set)
	}
}

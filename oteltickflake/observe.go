package oteltickflake

import (
	"errors"

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
// The error is one of the provider.
func Observe(gen *generator.Generator, options ...Option) (metric.Registration, error) {
	c := configure(options)
	m, set := c.meter(), c.set()
	ids, err := newTable(m, generatorMetrics)
	if err != nil {
		return nil, err
	}
	instruments := ids.instruments
	keeper, leased := gen.Keeper()
	var leases *table[lease.Stats]
	if leased {
		if leases, err = newTable(m, leaseMetrics); err != nil {
			return nil, err
		}
		instruments = append(instruments, leases.instruments...)
	}
	return register(m, func(o metric.Observer) {
		ids.observe(o, set, issuer{gen.Stats(), gen.Node()}, gauge)
		if leased && errors.Is(keeper.Err(), lease.ErrClosed) {
			leases.observe(o, set, keeper.Stats(), counter)
		} else if leased {
			leases.observe(o, set, keeper.Stats(), gauge)
		}
	}, instruments...)
}

// issuer is the state of a generator.
type issuer struct {
	generator.Stats
	node int64
}

var generatorMetrics = []row[issuer]{
	{counter, "tickflake.generator.waits", "{wait}", "Waits for a slot.", func(s issuer) any { return s.Waits }},
	{counter, "tickflake.generator.wait_time", "s", "Time of these waits, added up.", func(s issuer) any { return s.Waited }},
	{counter, "tickflake.generator.borrowed_ticks", "{tick}", "Ticks borrowed: issued before the clock reached them.", func(s issuer) any { return s.BorrowedTicks }},
	{counter, "tickflake.generator.rejections", "{call}", "Calls that the strategy rejected.", func(s issuer) any { return s.Rejections }},
	{gauge, "tickflake.generator.lead", "s", "How far the last ID is ahead of the clock.", func(s issuer) any { return s.Lead }},
	{gauge, "tickflake.generator.max_lead", "s", "The largest lead since the start.", func(s issuer) any { return s.MaxLead }},
	{gauge, "tickflake.generator.granted", "s", "From the clock to the end of the grant, or without a lease of the layout's time.", func(s issuer) any { return s.Remaining }},
	{gauge, "tickflake.generator.drift", "s", "The wall clock minus the generator's.", func(s issuer) any { return s.Drift }},
	{gauge, "tickflake.generator.wall_error", "s", "How far the wall clock may be off, by the kernel's word; below 0, it is unknown.", func(s issuer) any { return s.WallError }},
	{gauge, "tickflake.generator.node", "{node}", "The node number of the IDs.", func(s issuer) any { return s.node }},
}

var leaseMetrics = []row[lease.Stats]{
	{counter, "tickflake.lease.claims", "{claim}", "Node numbers claimed.", func(s lease.Stats) any { return s.Claims }},
	{counter, "tickflake.lease.extensions", "{extension}", "Grants extended.", func(s lease.Stats) any { return s.Extensions }},
	{counter, "tickflake.lease.conflicts", "{conflict}", "Node numbers lost to another process or an operator.", func(s lease.Stats) any { return s.Conflicts }},
	{counter, "tickflake.lease.releases", "{release}", "Node numbers released.", func(s lease.Stats) any { return s.Releases }},
	{counter, "tickflake.lease.failures", "{failure}", "Operations of the store that failed, and damaged cells.", func(s lease.Stats) any { return s.Failures }},
	{counter, "tickflake.lease.store_went_back", "{time}", "Times that the store had lost writes: IDs may have come twice.", func(s lease.Stats) any { return s.WentBack }},
	{counter, "tickflake.lease.pauses", "{pause}", "Times that the process or its machine stood still past its grant.", func(s lease.Stats) any { return s.Pauses }},
	{counter, "tickflake.lease.copies", "{time}", "Times that the process found its memory to be a copy.", func(s lease.Stats) any { return s.Copies }},
	{gauge, "tickflake.lease.remaining", "s", "From the clock to the end of the grant; below 0, IDs fail.", func(s lease.Stats) any { return s.Remaining }},
	{gauge, "tickflake.lease.window", "s", "The length of a grant.", func(s lease.Stats) any { return s.Window }},
}

// Package scorecard is the section of the report that puts tickflake's strategies and
// other generators through every fault of the catalogue, in virtual time. Its program
// must begin with peers.Serve.
package scorecard

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/strategies"
)

// Sections returns the one section.
func Sections() []measure.Section {
	return []measure.Section{{ID: "faults", Title: "Strategies under faults", Full: 8 * time.Second, Quick: 4 * time.Second,
		About: "Each fault is a script of calls, and of what happens to the clock, the process or the lease's store. " +
			"Every strategy of tickflake runs on a raw wall clock, on a monoclock, and on a monoclock under a lease. Other generators run as far as they can be driven: " +
			"with a virtual clock, in a bubble of testing/synctest, or in real processes. All time is virtual, so one run is enough. " +
			"A cell is ✓ if every call was served, in order, within one tick; ✗ if an ID came twice (dup) or a promise of the generator's documentation was broken; " +
			"– if the fault could not be run; * if another script was run. Any other cell is the price: failed calls or starts (err), IDs out of order (disorder), " +
			"a wait of more than a tick (stall), or an ID ahead of the clock by more than a tick (lead). " +
			"In F17, F18 and F20 a call that fails is right.",
		Measure: func(ctx context.Context, run *measure.Run) results.Section {
			rows, list := newRows()
			return measureRows(ctx, run, rows, list)
		},
		Verdict: verdict,
	}}
}

// named are the strategies of the documentation.
var named = []struct {
	name     string
	strategy strategies.Strategy
}{
	{"Reject()", strategies.Reject()},
	{"WaitUpTo(5ms)", strategies.WaitUpTo(5 * time.Millisecond)},
	{"BorrowUpTo(1s)", strategies.BorrowUpTo(time.Second)},
	{"Chain(BorrowUpTo(1s), WaitUpTo(5s))", strategies.Chain(strategies.BorrowUpTo(time.Second), strategies.WaitUpTo(5*time.Second))},
	{"Twitter()", strategies.LikeTwitter()},
	{"Leaf()", strategies.LikeLeaf()},
	{"Wait()", strategies.Wait()},
	{"LastTimestampPlusOne()", strategies.LastTimestampPlusOne()},
	{defaultName, strategies.Default()},
}

const defaultName = "Default()"

// fault is a column of the score card.
type fault struct {
	id, name, what string
	// run puts processes with leases through the fault. It is nil for the faults of
	// package generatortest.
	run func(context.Context, *record)
	// rightly says that a call that fails is right: there is no ID that is safe.
	rightly bool
}

// faults returns all twenty, in order.
func faults() []fault {
	all := []fault{
		{id: "F14", name: "skewed-fleet", what: "six processes, with clocks hours apart, claim eight node numbers, die and begin anew", run: fleet},
		{id: "F15", name: "store-outage", what: "the store of the leases is away, loses answers, or gets writes late", run: outage},
		{id: "F19", name: "snapshot-clone", what: "a process goes on beside a copy of its memory", run: clone},
		{id: "F20", name: "torn-state", what: "the file of a node number is damaged in six ways, and processes start on it", run: torn, rightly: true},
	}
	for _, s := range generatortest.Catalogue() {
		rightly := s.Fault == "F17" || s.Fault == "F18" // after the end of time, and before its beginning
		all = append(all, fault{id: s.Fault, name: s.Name, what: s.What, rightly: rightly})
	}
	number := func(f fault) int { n, _ := strconv.Atoi(f.id[1:]); return n }
	slices.SortFunc(all, func(a, b fault) int { return number(a) - number(b) })
	return all
}

// row is a strategy in a setting, or a peer.
type row struct {
	peers.Peer
	short    string              // the strategy, or the peer's name
	setting  peers.Setting       // of a strategy
	strategy strategies.Strategy // nil for a peer
	results  map[string]generatortest.Result
}

// newRows returns tickflake's strategies in each setting, and the peers, not run yet.
func newRows() (rows []*row, list []peers.Peer) {
	for _, in := range []peers.Setting{peers.Leased, peers.Mono, peers.Raw} {
		for _, s := range named {
			rows = append(rows, &row{Peer: peers.Tickflake(s.name, s.strategy, in), short: s.name, setting: in, strategy: s.strategy})
		}
	}
	for _, p := range peers.List() {
		rows = append(rows, &row{Peer: p, short: p.Name})
	}
	for _, r := range rows {
		list = append(list, r.Peer)
	}
	return rows, list
}

// ran returns the result of a fault, if it was run.
func (r *row) ran(f fault) (generatortest.Result, bool) {
	got, ok := r.results[f.id]
	return got, ok && got.Skipped == ""
}

// reason is why a fault was not run.
func (r *row) reason(f fault) string {
	got, ok := r.results[f.id]
	switch {
	case ok:
		return got.Skipped
	case f.id == "F19":
		return "its memory cannot be copied here"
	}
	return "it has no lease"
}

func (r *row) group() results.Group {
	if r.strategy != nil {
		return results.Ours
	}
	return results.Peers
}

// measureRows runs the peers of the list, each of which is the row of the same index, and
// then the faults of leases.
func measureRows(ctx context.Context, run *measure.Run, rows []*row, list []peers.Peer) results.Section {
	// Two processes of peers never answer. The rest of the budget is for the others,
	// which run beside them.
	limit := min(5*time.Second, run.Budget*3/8)
	all := faults()
	for i, got := range peers.Run(ctx, list, limit, run.Progress) {
		rows[i].results = got
	}
	for i, r := range rows {
		for _, f := range all {
			if f.run == nil || r.setting != peers.Leased {
				continue
			}
			run.Progress(i, len(rows), r.Name+", "+f.id)
			r.results[f.id] = f.result(ctx, r.strategy)
		}
	}
	return results.Section{Tables: tables(rows, all)}
}

// result puts a strategy through a fault of leases.
func (f fault) result(ctx context.Context, s strategies.Strategy) generatortest.Result {
	r := newRecord(s)
	if ctx.Err() == nil {
		f.run(ctx, r)
	}
	if ctx.Err() != nil { // perhaps in the middle
		return generatortest.Result{Skipped: peers.Interrupted}
	}
	return r.Result
}

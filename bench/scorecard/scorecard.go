// Package scorecard is the section of the report that puts tickflake's strategies and
// other generators through every fault of the catalogue, in virtual time. Its program
// must begin with peers.Serve.
package scorecard

import (
	"context"
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
		About: "Each fault is a script of calls, and of what happens to the clock and the process. " +
			"Every strategy of tickflake runs on a raw wall clock, on a monoclock, and on a monoclock under a lease. Other generators run as far as they can be driven: " +
			"with a virtual clock, in a bubble of testing/synctest, or in real processes. All time is virtual, so one run is enough. " +
			"A cell is ✓ if every call was served, in order, within one tick; ✗ if an ID came twice (dup) or a promise of the generator's documentation was broken; " +
			"– if the fault could not be run; * if another script was run. Any other cell is the price: failed calls or starts (err), IDs out of order (disorder), " +
			"a wait of more than a tick (stall), or an ID ahead of the clock by more than a tick (lead). " +
			"In F17 and F18 a call that fails is right. The faults of stores and leases (F14, F15, F19, F20), which peers do not have, are in chaos_test; " +
			"in F19, a copy of a process's memory, every strategy issues IDs twice.",
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

// rightly says that in a fault a call that fails is right, because there is no ID that is
// safe: after the end of time, and before its beginning.
func rightly(fault string) bool { return fault == "F17" || fault == "F18" }

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
func (r *row) ran(fault string) (generatortest.Result, bool) {
	got, ok := r.results[fault]
	return got, ok && got.Skipped == ""
}

func (r *row) group() results.Group {
	if r.strategy != nil {
		return results.Ours
	}
	return results.Peers
}

// measureRows runs the peers of the list, each of which is the row of the same index.
func measureRows(ctx context.Context, run *measure.Run, rows []*row, list []peers.Peer) results.Section {
	// Two processes of peers never answer. The rest of the budget is for the others,
	// which run beside them.
	limit := min(5*time.Second, run.Budget*3/8)
	for i, got := range peers.Run(ctx, list, limit, run.Progress) {
		rows[i].results = got
	}
	return results.Section{Tables: tables(rows, generatortest.Catalogue())}
}

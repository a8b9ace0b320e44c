package scorecard

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/bench/peers"
	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/strategies"
)

// named are the strategies of the README's table, and what it calls them.
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

// settings are what each strategy is run with.
var settings = []peers.Setting{peers.Leased, peers.Mono, peers.Raw}

// fault is a column of the score card.
type fault struct {
	id, name, what string
	// run puts a strategy under a lease through a fault that is more than one generator
	// and its clock. It is nil for those of the catalogue of package generatortest.
	run func(context.Context, *record)
	// rightly says that to fail is right: there is no ID to be had, or none that is
	// safe. Else a call that fails is a price, promised or not.
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
	slices.SortFunc(all, func(a, b fault) int { return number(a.id) - number(b.id) })
	return all
}

// number is that of a fault: 5 for F5.
func number(id string) int {
	n, _ := strconv.Atoi(id[1:])
	return n
}

// row is a strategy in a setting, or a peer.
type row struct {
	peers.PeerReport
	short    string              // the strategy, or the peer's name
	setting  peers.Setting       // of a strategy
	strategy strategies.Strategy // nil for a peer
	extra    map[string]peers.Outcome
}

// outcome is what came of a fault, if it was tried.
func (r *row) outcome(f fault) (peers.Outcome, bool) {
	if o, ok := r.extra[f.id]; ok {
		return o, true
	}
	return r.Result(f.id)
}

// ran returns the outcome of a fault that was run.
func (r *row) ran(f fault) (peers.Outcome, bool) {
	o, ok := r.outcome(f)
	return o, ok && o.Skipped == ""
}

// reason is why a fault was not run.
func (r *row) reason(f fault) string {
	switch o, ok := r.outcome(f); {
	case ok:
		return o.Skipped
	case f.id == "F19":
		return "its memory cannot be copied here"
	case r.strategy != nil:
		return "its node number is given by hand: there is no lease that could go wrong"
	}
	return "it has no lease that could go wrong"
}

func (r *row) group() results.Group {
	if r.strategy != nil {
		return results.Ours
	}
	return results.Peers
}

// newRows returns tickflake's strategies in each setting, and the peers, not run yet.
func newRows() (rows []*row, list []peers.Peer) {
	for _, in := range settings {
		for _, s := range named {
			list = append(list, peers.Tickflake(s.name, s.strategy, in))
			rows = append(rows, &row{short: s.name, setting: in, strategy: s.strategy, extra: map[string]peers.Outcome{}})
		}
	}
	for _, p := range peers.List() {
		list = append(list, p)
		rows = append(rows, &row{short: p.Name})
	}
	return rows, list
}

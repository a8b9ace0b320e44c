package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/sim/fleettest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

// checks is what a run knows that no process does.
type checks struct {
	ids    map[snowflake.ID]struct{} // all that were issued
	limits map[string]uint64         // by key
	undone map[string][][2]uint64    // by key: the ticks that were granted, and the store has lost since
}

// watch looks at each write that takes effect.
func (f *fleet) watch() {
	f.checks = checks{make(map[snowflake.ID]struct{}, 1024), map[string]uint64{}, map[string][][2]uint64{}}
	f.Store.Landed = func(_ *fleettest.Process, key string, value []byte) {
		if prefix, ok := strings.CutSuffix(key, cell.FleetKey); ok {
			f.open[len(prefix)] = true
		}
		f.limits[key] = recordOf(value).Limit
	}
	f.Store.Rewound = func(key string, value []byte) {
		to := recordOf(value).Limit
		f.undone[key] = append(f.undone[key], [2]uint64{to, f.limits[key]})
		f.limits[key] = to
	}
}

// recordOf is the record in a cell, or the zero one if there is none.
func recordOf(value []byte) (r cell.Node) {
	_ = json.Unmarshal(value, &r) // not as a keeper does, since a mutant may have written it
	return r
}

// tickText shows a tick as the time from the start of the run, by a true clock.
func (f *fleet) tickText(tick uint64) string {
	at := f.layout.Epoch.Add(time.Duration(tick) * f.layout.Tick)
	return fmt.Sprintf("%d (%s)", tick, at.Sub(fleettest.Start))
}

// issued is told of each ID that a call returned.
func (f *fleet) issued(t *caller, id snowflake.ID) {
	p := t.p
	node, tick := must(f.layout.Decode(id)).Node, uint64(id)>>(f.layout.NodeBits+f.layout.SequenceBits)
	f.Issued++
	t.Tracef("issues tick %d of node %d, ID %d", tick, node, id)
	if p.site > 0 {
		f.Tally["IDs of a new site"]++
	}
	if f.given[node] {
		f.Fail("past number", "%s issues tick %s of node %d, which was given to the past", p.Name, f.tickText(tick), node)
	}
	if !f.has[p.site].Has(node) {
		f.Fail("another site's number", "%s issues tick %s of node %d on site %d", p.Name, f.tickText(tick), node, p.site)
	}
	key := prefix(p.site) + cell.NodeKey(node)
	undone := slices.ContainsFunc(f.undone[key], func(s [2]uint64) bool { return s[0] <= tick && tick < s[1] })
	if _, ok := f.ids[id]; ok && undone {
		f.Tally["repeats"]++ // a process that came after the store went back could not know
	} else if ok {
		f.Fail("duplicate", "%s issues tick %s of node %d, ID %d, a second time", p.Name, f.tickText(tick), node, id)
	}
	f.ids[id] = struct{}{}
	if !undone {
		if limit := f.limits[key]; tick >= limit {
			f.Fail("ID beyond the limit", "%s issues tick %s of node %d, whose limit is %s", p.Name, f.tickText(tick), node, f.tickText(limit))
		}
	}
	p.last, p.tick, p.excuse = f.Now, max(p.tick, tick), ""
	if t.kind == streamed {
		if id <= t.latest || tick < t.floorTick {
			f.Fail("order of a stream", "%s issues %d after %d and tick %d", p.Name, id, t.latest, t.floorTick)
		}
		t.latest = id
		return
	}
	if id <= t.floor {
		f.Fail("order", "%s issues %d, after %d was returned", p.Name, id, t.floor)
	}
	p.largest = max(p.largest, id)
}

// refused is told of each error that a call returned.
func (f *fleet) refused(t *caller, err error) {
	p := t.p
	f.Tally["refusals"]++
	t.Tracef("fails: %T", err)
	var none *generator.GrantError
	var lead *generator.LeadError
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.As(err, &none):
		f.Tally["without a grant"]++
		if none.Past > 0 {
			f.Tally["ended"]++
		}
		p.excuse = ""
		// Between the old grant and the next there may be ticks that are another's.
		gap := p.k.Held().Version != 0 && p.k.Held().Floor > p.k.Used().To
		if f.stores == 1 && !gap && !f.holdsOther(p) && none.Past > 0 && f.Calm && f.Now > max(f.CalmSince, p.Started, p.lost)+f.bound() {
			f.Fail("error in the calm", "%s: %v", p.Name, err)
		}
	case errors.As(err, &lead):
		if lead.Lead > lead.Limit {
			p.excuse = "its clock is behind"
		}
	case ended, errors.Is(err, generator.ErrClosed):
	default:
		f.Fail("error", "%s: %T %v", p.Name, err, err)
	}
	if t.late && !errors.Is(err, generator.ErrClosed) && !ended {
		f.Fail("close", "%s was closed, and fails with %v", p.Name, err)
	}
}

// holdsOther reports whether another process holds, or has taken, the number that p
// must have.
func (f *fleet) holdsOther(p *process) bool {
	if p.gen != nil && p.k.Held().Version == 0 && errors.Is(p.k.Err(), lease.ErrHeld) {
		return true
	}
	return slices.ContainsFunc(f.all, func(o *process) bool {
		return o != p && !o.Dead && o.k != nil && o.k.Held().Version != 0 && o.k.Held().Node == p.node
	})
}

// bound is within what time everybody who can issues again once the faults are over:
// five windows. A request that was lost times out within one. A process that gave up
// then is started anew within half a one. The number of one who died is free two
// windows after it was first looked at. The rest is for what the strategy may wait.
func (f *fleet) bound() int64 { return 5 * f.longest }

// checkLiveness makes sure that everybody who can has issued an ID within d, or within
// the bound if it lost its number meanwhile. It does so to one who needs a number, and
// whose clock is more than two windows ahead, and so takes it for dead.
func (f *fleet) checkLiveness(d int64) {
	for _, p := range f.all {
		since := f.Now - d
		if p.lost > since {
			since = f.Now - f.bound()
		}
		switch {
		case p.Dead, p.Closing, p.Started > f.Now-f.bound():
		case p.last > since:
			f.Tally["live"]++
		case p.node >= 0 && f.holdsOther(p):
			f.Tally["excused: another has its number"]++
		case p.excuse != "":
			f.Tally["excused: "+p.excuse]++
		default:
			state := "has no lease"
			if p.k != nil && p.gen != nil {
				state = fmt.Sprintf("has node %d up to %s, error %v", p.k.Used().Node, f.tickText(p.k.Used().To), p.k.Err())
			}
			f.Fail("liveness", "%s has issued nothing since %s (the faults were over at %s): it %s; last error %v",
				p.Name, time.Duration(p.last), time.Duration(f.CalmSince), state, p.err)
		}
	}
}

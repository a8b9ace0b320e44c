package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/internal/span"
)

// This file compares our clock with the clocks of the others, by the cells that the
// rounds of the protocol have read: a holder keeps its limit between two thirds and a
// whole of its window ahead of its clock. Nothing of the protocol depends on it.
//
// A crash, of one process or of the whole fleet, may leave a limit that is far from all
// clocks. Living processes write again within a third of their window, so only cells that
// were written again count. The error, of a first claim only, waits for such writes; a
// warning is logged once there are some.

const (
	// sampled is the largest number of cells to compare with.
	sampled = 256
	// leastFleet is how many others must agree that our clock is ahead before a first claim
	// waits to see whether they are alive. One or two may have crashed some time ago, and on
	// the single host of a store with locks all of them may.
	leastFleet = 3
)

// estimate is how far our clock is ahead of the fleet's, by the cells of others.
type estimate struct {
	skew     time.Duration
	nodes    int              // how many agree
	window   uint64           // the longest of them and ours
	versions map[int64]uint64 // of the cells
}

// doubt says that the clock may be far from the fleet's. It ends when living holders have
// written again.
type doubt struct {
	estimate               // at the claim; without versions if there is no doubt
	from, to string        // the range of the cells' keys
	due      time.Duration // when all living holders should have written again, in elapsed time
	asked    int
}

// estimate compares our clock with those of other processes, by the cells that were written since they had
// these versions.
func (k *Keeper) estimate(cells []grant.Cell, since map[int64]uint64) estimate {
	e := estimate{window: k.config.window, versions: map[int64]uint64{}}
	var clocks []uint64
	for _, c := range cells {
		if r := c.Record; r.Holder != "" && r.Holder != k.machine.Token() && r.Limit < k.end() && c.Node != k.node && c.Version != since[c.Node] {
			clocks = append(clocks, clockOf(r))
			e.window, e.versions[c.Node] = max(e.window, r.Window), c.Version
		}
	}
	var theirs uint64
	if theirs, e.nodes = commonest(clocks, e.window); e.nodes > 0 {
		e.skew = k.between(theirs, k.tick())
	}
	return e
}

// ahead is how far a tick lies ahead of our clock. doubtful says that no process with this window has been granted the
// time before it by a clock like ours: it is a minute and two windows, the larger of that and ours, behind.
func (k *Keeper) ahead(tick, window uint64) (by time.Duration, doubtful bool) {
	now := k.tick()
	return k.between(now, tick), k.between(max(now, k.fleet.Floor), tick)-2*k.between(0, max(window, k.config.window)) > time.Minute
}

// witness looks among cells that a claim has read for a grant that lies too far ahead of our clock. Reservations and
// numbers that have moved lie ahead on purpose. It logs one, and the error is that of a strict first claim.
func (k *Keeper) witness(cells ...grant.Cell) error {
	for _, c := range cells {
		r := c.Record
		by, doubtful := k.ahead(r.Limit, r.Window)
		if !doubtful || r.Reserved || r.MovedTo != "" || r.Past != "" || r.Limit >= k.end() || r.Holder != "" && r.Holder == k.machine.Token() {
			continue
		}
		err := drive.Wrap(fmt.Sprintf("node number %d was granted until %s, %s ahead of this clock: this clock is behind, or an earlier one was ahead: compare it with another machine's, and start again when it is right",
			c.Node, k.time(r.Limit).Format(time.RFC3339), span.Text(by.Round(time.Second))), ErrSkew)
		switch {
		case k.strict && by > k.skew && k.Stats().Claims == 0:
			return fmt.Errorf("%w; or, if it is right, claim without the strict check", err)
		case !k.warned && c.Node != k.node: // else the line of the claim says so
			k.warned = true
			k.log.Warn("lease: "+err.Error(), "node", c.Node)
		}
	}
	return nil
}

// far reports whether a skew is beyond the limit of WithFleetLimit.
func (k *Keeper) far(e estimate) bool { return e.skew.Abs()-k.between(0, e.window)/6 > k.skew }

// checkClock compares our clock with the fleet's by the first cells that a claim has read, or, if these are too
// few, by a sample of all cells. The error is that of a strict first claim. One that had to wait reads the cells again.
func (d *driver) checkClock(ctx context.Context, op grant.Op, r *grant.Result) error {
	d.doubts = doubt{}
	now := doubt{estimate: d.estimate(append(r.Cells, r.Cell), nil), from: cell.NodesFrom, to: cell.NodesTo}
	if len(now.versions) >= leastFleet {
		now.from, now.to = cell.NodeKey(op.Node), cell.NodeKey(op.Node+op.N)
	} else if !d.created && !d.unchecked() && max(op.N, 1) < d.numbers() {
		cells, err := d.sample(ctx, now.from, now.to)
		if err == nil {
			now.estimate, err = d.estimate(cells, nil), d.witness(cells...)
		}
		if err != nil {
			return err
		}
	}
	crashed := now.skew > 0 && (now.nodes < leastFleet || d.locking()) // perhaps all of them
	switch {
	case d.strict && d.far(now.estimate) && !crashed && d.Stats().Claims == 0:
		select {
		case <-d.after(d.between(0, now.window) / 2):
		case <-ctx.Done():
			return fmt.Errorf("%w: no time to see whether the others live: %w", pause.Ended(ctx), d.skewError(now.estimate))
		}
		if _, err := d.look(ctx, now); err != nil {
			return err
		}
		return d.call(ctx, op, r)
	case now.skew.Abs() > d.third() && !d.unchecked():
		now.due = d.elapsed() + d.between(0, now.window)/3
		d.doubts, now.skew = now, 0
	}
	d.setSkew(now.skew)
	return nil
}

// compare compares our clock with the fleet's by what an operation of a claim has read. The error is that of the
// operation, or that of a strict first claim.
func (d *driver) compare(ctx context.Context, op grant.Op, r *grant.Result, err error) error {
	if op.Why == grant.First && err == nil {
		err = d.checkClock(ctx, op, r)
	}
	if found := d.witness(append(r.Cells, r.Cell)...); err == nil {
		err = found
	}
	return err
}

// unchecked reports whether no clock is too far.
func (c *config) unchecked() bool { return c.skew == math.MaxInt64 }

// sample lists some cells. A store that does not let us, as for want of a right, is no reason to fail, unless the
// check is strict.
func (k *Keeper) sample(ctx context.Context, from, to string) ([]grant.Cell, error) {
	if k.strict {
		return k.list(ctx, from, to, sampled)
	}
	bounded, cancel := context.WithTimeout(ctx, k.brief)
	defer cancel()
	cells, err := k.list(bounded, from, to, sampled)
	if errors.Is(err, ErrStore) {
		k.tally(&k.stats.Failures)
		k.log.Debug("lease: the clock is not compared with the fleet's", kindAttr(err), "err", err)
		err = nil
	}
	return cells, err
}

// look compares our clock with those of the holders that have written since a doubt began, and reports whether there are
// any. The error is that of the store, or that of a skew beyond the limit.
func (k *Keeper) look(ctx context.Context, d doubt) (some bool, err error) {
	cells, err := k.list(ctx, d.from, d.to, sampled)
	if err != nil {
		return false, err
	}
	e := k.estimate(cells, d.versions)
	k.setSkew(e.skew)
	if k.far(e) {
		err = k.skewError(e)
	}
	return len(e.versions) > 0, err
}

func (k *Keeper) setSkew(skew time.Duration) {
	k.state.Lock()
	defer k.state.Unlock()
	k.stats.Skew = skew
}

// settle compares our clock with those of the holders that have written since the claim.
// It delays extensions by k.brief at most, and looks at most three times.
func (k *Keeper) settle(ctx context.Context) {
	d := &k.doubts
	if d.versions == nil || k.elapsed() < d.due {
		return
	}
	d.due += k.between(0, d.window) / 3
	d.asked++
	bounded, cancel := context.WithTimeout(ctx, k.brief)
	defer cancel()
	some, err := k.look(bounded, *d)
	switch {
	case errors.Is(err, ErrSkew):
		k.log.Warn("lease: "+err.Error(), kindAttr(err))
	case errors.Is(err, ErrStore):
		k.tally(&k.stats.Failures)
	}
	if some || d.asked == 3 {
		k.doubts = doubt{}
	}
}

func (k *Keeper) skewError(e estimate) error {
	direction := "ahead of"
	if e.skew < 0 {
		direction = "behind"
	}
	return drive.Wrap(fmt.Sprintf("clock is about %s %s the fleet, by the grants of %d nodes (limit %s): set it right; IDs stay unique, but may not sort with the others'", span.Text(e.skew.Abs().Round(time.Second)), direction, e.nodes, k.skew), ErrSkew)
}

// clockOf is the tick that a holder's clock most likely showed when it wrote the record.
func clockOf(r cell.Node) uint64 { return r.Limit - min(r.Limit, r.Window/6*5) }

// commonest returns the time of the largest group of clocks that lie within width, and the
// size of the group. The clocks of crashed holders lie scattered in the past; those of
// living holders lie together. Of several groups of that size the latest counts.
func commonest(clocks []uint64, width uint64) (at uint64, n int) {
	slices.Sort(clocks)
	first := 0
	for last, clock := range clocks {
		for clock-clocks[first] > width {
			first++
		}
		if group := last - first + 1; group >= n {
			at, n = clocks[first+group/2], group
		}
	}
	return at, n
}

// sighting is the version of a cell and the elapsed time at which it was first read.
type sighting struct {
	version uint64
	since   time.Duration
}

// maxSeen bounds the sightings. Beyond it, they are dropped, and the limits of the cells
// decide.
const maxSeen = 4096

// sight notes of each cell that a claim has read whether it has had its version for two windows of our own time.
func (k *Keeper) sight(r *grant.Result) {
	k.sightCell(&r.Cell)
	for i := range r.Cells {
		k.sightCell(&r.Cells[i])
	}
}

func (k *Keeper) sightCell(c *grant.Cell) {
	if k.locking() || c.Record.Holder == "" || k.pinned() {
		return
	}
	s, ok := k.seen[c.Node]
	if !ok || s.version != c.Version {
		if len(k.seen) >= maxSeen {
			clear(k.seen)
		}
		s = sighting{version: c.Version, since: k.elapsed()}
		k.seen[c.Node] = s
	}
	c.Still = (k.elapsed()-s.since)/2 >= k.between(0, max(c.Record.Window, k.config.window)) // twice the span may overflow
}

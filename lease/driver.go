package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/stores"
)

// work runs the machine until there is nothing to do now. The caller has the turn.
func (k *Keeper) work(ctx context.Context) error {
	if k.lost != nil {
		return k.lost
	}
	k.machine.Begin()
	defer func() {
		k.machine.Begin() // what a claim has read is old by the next step
		k.unlock(k.machine.Keeps)
	}()
	return drive.Run(ctx, &driver{Keeper: k})
}

// driver gives a keeper to one run of its machine.
type driver struct {
	*Keeper
	in     grant.Input
	op     grant.Op
	result grant.Result
	token  string // the machine's, before it was told the last result
	why    error  // why the last cell was not to be had
	landed bool   // this run has claimed or extended
}

// Lock does nothing: the turn keeps other goroutines away.
func (*driver) Lock() {}

// Unlock does nothing.
func (*driver) Unlock() {}

// Next asks the machine for the next operation.
func (d *driver) Next() (drive.Kind, error) {
	if d.closing.Load() && !d.closed {
		return drive.None, ErrClosed
	}
	if d.in = d.input(); d.in.Restored {
		d.forgot()
	}
	d.op = d.machine.Next(d.in)
	return d.kind(d.op)
}

// Done tells the machine what became of it.
func (d *driver) Done() (settled bool, err error) {
	if d.machine.Held().Version == 0 {
		d.sight(&d.result)
	}
	d.in = d.input()
	d.token = d.machine.Token()
	return drive.Act(d.machine.Done(d.in, d.op, d.result), d.apply)
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

// input reads the clock and the window, and what Close and Restored have said.
func (k *Keeper) input() grant.Input {
	k.distrust(false)
	name := k.random()
	in := grant.Input{Now: k.tick(), Used: k.window.Used(), Wanted: k.window.Wanted(), Name: name, Pick: pick(name), Due: k.dueIn() <= 0, Closing: k.closed, Apart: k.apart.Load()}
	k.state.Lock()
	defer k.state.Unlock()
	in.Grant, in.Restored = k.given, k.restored
	k.restored = false
	return in
}

// pick derives a random number from a random name.
func pick(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// kind returns what an operation is, or why there is nothing to do.
func (d *driver) kind(op grant.Op) (drive.Kind, error) {
	d.unlock(d.machine.Keeps)
	switch {
	case op.Why == grant.Full:
		return drive.None, d.full()
	case op.Why == grant.EndOfTime:
		return drive.None, fmt.Errorf("%w: it ends at %s: set the clock right, or move to a layout with larger IDs, or to a new table", ErrEndOfTime, d.layout.End().Format(time.RFC3339))
	case op.Why == grant.Over:
		return drive.None, d.lost
	case op.Kind == grant.None:
		return drive.None, nil
	case d.landed && !d.closed: // a write of unknown outcome has landed: the next step may extend it
		return drive.None, nil
	case op.Kind == grant.Swap:
		if op.Why == grant.OfFleet || op.Why == grant.Raise {
			return drive.Prepare, nil
		}
		return drive.Write, nil
	}
	return drive.Ask, nil
}

// Do carries the operation out.
func (d *driver) Do(ctx context.Context) (failed error) {
	d.result = grant.Result{}
	began := d.elapsed()
	err := d.call(ctx, d.op, &d.result)
	d.ranLate(d.elapsed() - began - d.timeout) // a call that ends much later than its timeout
	if d.machine.Held().Version == 0 {
		if found := d.witness(append(d.result.Cells, d.result.Cell)...); err == nil {
			err = found
		}
	}
	d.noteCall(d.op.Node, err)
	if err != nil {
		d.why = err
	}
	d.result.Status, failed = statusOf(err)
	return failed
}

// call makes the call of the store.
func (d *driver) call(ctx context.Context, op grant.Op, r *grant.Result) (err error) {
	fleet := op.Node == grant.FleetNode
	switch {
	case op.Kind == grant.Seal:
		r.Used, _ = d.window.Seal()
	case op.Kind == grant.Lock:
		unlock, err := d.lock(ctx, op.Node)
		if err == nil {
			d.locks[op.Node] = unlock
		}
		return err
	case op.Kind == grant.List:
		r.Cells, err = d.list(ctx, cell.NodeKey(op.Node), cell.NodeKey(op.Node+op.N-1)+"\x00", int(op.N))
	case op.Kind == grant.Read && fleet:
		if err := d.layout.ValidateAt(d.clock.Now()); err != nil {
			return &stores.OptionError{Option: "WithClock", Err: err}
		}
		if r.Cell.Version, err = d.readFleet(ctx); err == nil && r.Cell.Version != 0 {
			err = d.checkInFleet("WithNode", d.node)
		}
		r.Fleet = grant.Fleet{Nodes: d.fleet.Nodes, Floor: d.fleet.Floor, First: d.fleet.First}
	case op.Kind == grant.Read:
		r.Cell, err = d.readCell(ctx, op.Node)
	case fleet:
		f := d.newFleet(cell.AllNodes(d.layout))
		r.Version, err = d.swapFleet(ctx, 0, f)
		r.Fleet = grant.Fleet{Nodes: f.Nodes, Floor: f.Floor, First: f.First}
	default:
		r.Version, err = d.swap(ctx, op.Node, op.Version, op.Record)
	}
	return err
}

// list lists cells, counts those that are damaged, and has the machine learn from the others.
func (k *Keeper) list(ctx context.Context, from, to string, limit int) ([]grant.Cell, error) {
	cells, err := k.keys.list(ctx, from, to, limit, k.damaged)
	k.machine.Learn(cells...)
	return cells, err
}

// unlock unlocks all cells but those that are kept.
func (k *Keeper) unlock(kept func(node int64) bool) {
	for node, unlock := range k.locks {
		if !kept(node) {
			delete(k.locks, node)
			unlock()
		}
	}
}

// statusOf sorts the error of a call of the store. failed is that of a call that has failed, or whose
// outcome is unknown.
func statusOf(err error) (s grant.Status, failed error) {
	switch {
	case err == nil:
		return grant.OK, nil
	case errors.Is(err, drive.ErrStore):
		return grant.Failed, err
	case errors.Is(err, stores.ErrConflict):
		return grant.Conflict, nil
	case errors.Is(err, stores.ErrLocked):
		return grant.Locked, nil
	case errors.Is(err, stores.ErrDamaged):
		return grant.Damaged, nil
	}
	return grant.Failed, err
}

// apply acts on an event.
func (d *driver) apply(e grant.Event) (settled bool, err error) {
	switch e.Kind {
	case grant.Claimed:
		d.landed = true
		d.claimed(e)
	case grant.Extended:
		d.landed = true
		d.extended(e)
	case grant.Released:
		d.tally(&d.stats.Releases)
		d.log.Info("lease: released", "node", e.Range.Node, "from", d.time(e.Record.Limit))
	case grant.Lost:
		err = d.loses(e)
	case grant.Suspected:
		d.suspects(e)
	case grant.Trusted:
		d.trusts(e)
	case grant.WentBack:
		err = d.wentBack(e)
	case grant.Forgot:
		d.forgot()
	case grant.Broken:
		return true, d.why
	default:
		return false, nil
	}
	d.publish()
	return true, err
}

// Busy is the error of a claim that others preceded each time, or of a store that shows an older state each
// time.
func (d *driver) Busy() error {
	d.tally(&d.stats.Failures)
	h := d.machine.Held()
	if h.Version == 0 {
		return errBusy
	}
	if d.machine.Suspects() {
		return d.suspicion
	}
	return drive.Wrap(fmt.Sprintf("node number %d: the store shows a cell and does not extend it, %d times in a row: it answers reads that are out of date", h.Node, drive.InARow), ErrStore)
}

var errBusy = drive.Busy(fmt.Sprintf("%v, %d times in a row: many processes claim at once", stores.ErrConflict, drive.InARow))

// claimed notes that a cell is ours.
func (k *Keeper) claimed(e grant.Event) {
	clear(k.seen)
	k.recovered()
	if !k.locking() { // others may have claimed at the same time
		k.due += grant.Spread(k.third(), pick(k.random())) - k.third()
	}
	k.tally(&k.stats.Claims)
	if ahead := k.between(k.tick(), e.Range.From); e.Range.From == k.fleet.Floor && ahead > k.period {
		k.log.Warn("lease: no ID is issued before the fleet's floor", "node", e.Range.Node, "floor", k.time(k.fleet.Floor), "ahead", span.Text(ahead))
	}
	attrs := []any{"node", e.Range.Node, "from", k.time(e.Range.From), "until", k.time(e.Range.To)}
	if by, doubtful := k.ahead(e.Range.From, 0); doubtful {
		k.log.Warn("lease: claimed, and no ID is issued by the clock before the grant begins: this clock is behind, or an earlier one was ahead, if no strategy borrowed so far: set it right and start again; if it is right, another number helps at once", append(attrs, "ahead", span.Text(by.Round(time.Second)))...)
	} else {
		k.log.Info("lease: claimed", attrs...)
	}
}

// extended notes that the cell has our limit.
func (k *Keeper) extended(e grant.Event) {
	k.recovered()
	k.tally(&k.stats.Extensions)
	k.log.Debug("lease: extended", "node", e.Range.Node, "until", k.time(e.Range.To))
}

// loses notes that another process has taken the cell. The machine claims another number, unless
// this one was pinned.
func (d *driver) loses(e grant.Event) error {
	if d.closed {
		return nil // the cell is not ours, so there is no release
	}
	d.tally(&d.stats.Conflicts)
	by := "another process took it"
	switch {
	case e.Record.Write == "":
		by = "its cell is damaged"
	case e.Record.Holder == d.token:
		by = "a copy of this process's memory wrote to it: a snapshot was restored beside its original"
	case e.Record.MovedTo != "":
		by = "an operator moved it to " + cell.Where(e.Record.MovedTo)
	case e.Record.Past != "":
		by = "an operator gave it to the past"
	case e.Record.Reserved:
		by = "an operator reserved it"
	case e.Record.Holder == "":
		by = "another process took and released it, or an operator released it"
	}
	attrs := []any{"node", e.Range.Node, "ours until", d.time(e.Range.To)}
	if e.Record.Owner != "" {
		attrs = append(attrs, "holder", e.Record.Owner)
	}
	d.log.Warn("lease: lost, "+by, attrs...)
	if d.pinned() {
		d.lost = takenError(e.Range.Node, e.Record, ErrLost, stores.ErrConflict)
	}
	return d.lost
}

// suspects takes the grant back until another read of the cell.
func (k *Keeper) suspects(e grant.Event) {
	k.revoke()
	k.suspicion = drive.Wrap(fmt.Sprintf("node number %d was granted to this process up to %s, and %s: the store answered with an older state, or went back: the next read tells",
		e.Range.Node, k.time(e.Range.To).Format(timeFormat), k.foundText(e)), ErrStore)
	k.setErr(k.suspicion)
	k.log.Warn("lease: "+k.suspicion.Error(), "node", e.Range.Node)
}

// trusts ends a suspicion. What was granted is given to the window again, also if the same read shows that
// another process has the cell since.
func (k *Keeper) trusts(e grant.Event) {
	k.setErr(nil)
	k.state.Lock()
	if !k.restored && !k.closing.Load() {
		k.give(e.Range)
	}
	k.state.Unlock()
	k.log.Info("lease: the store had answered with an older state, and has all writes", "node", e.Range.Node, "until", k.time(e.Range.To))
}

// wentBack notes that the store has lost an acknowledged write. The grant was revoked with the suspicion, since a
// process that started later may have been granted it too.
func (k *Keeper) wentBack(e grant.Event) error {
	k.tally(&k.stats.WentBack)
	err := fmt.Errorf("%w: node number %d was granted to this process up to %s (tick %d), and %s: look for duplicate IDs from before that limit",
		stores.ErrWentBack, e.Range.Node, k.time(e.Range.To).Format(timeFormat), e.Range.To, k.foundText(e))
	k.log.Error("lease: "+err.Error(), "node", e.Range.Node, kindAttr(err))
	k.failures, k.since, k.kind = k.failures+1, k.clock.Now(), stores.Loss // this failure is logged
	if k.closed {
		return nil
	}
	return err
}

// foundText says what was found in the cell of a store that may have gone back.
func (k *Keeper) foundText(e grant.Event) string {
	switch r := e.Record; {
	case r.Write == "":
		return "its cell is gone"
	case r.Limit >= e.Range.To:
		return fmt.Sprintf("another process was granted the time from %s (tick %d)", k.time(r.Floor).Format(timeFormat), r.Floor)
	default:
		return fmt.Sprintf("its limit is %s (tick %d)", k.time(r.Limit).Format(timeFormat), r.Limit)
	}
}

// full is the error of a claim that found no free number.
func (d *driver) full() error {
	sought := d.machine.Sought()
	if !d.pinned() {
		e := &NoFreeNodeError{Held: sought.Others, Nodes: d.numbers()}
		if sought.Until != 0 {
			e.Until = d.time(sought.Until)
		}
		return e
	}
	owner := ""
	if len(sought.Cells) == 1 {
		c := sought.Cells[0]
		if c.Record.MovedTo != "" || c.Record.Past != "" || c.Record.Reserved && !c.Taken {
			return takenError(d.node, c.Record)
		}
		if sought.Busy {
			owner = c.Record.Owner
		}
	}
	return heldError(d.node, owner, cmp.Or(d.why, ErrHeld))
}

package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/stores"
)

// Floors says where each node number of a fleet begins in another store: [Export] makes it, and
// [Import] takes it. Its JSON form is a file for people and programs.
type Floors struct {
	Format int     `json:"format"` // of this document: 1
	Export string  `json:"export"` // the random name of the export
	Layout string  `json:"layout"` // of the IDs, as [snowflake.ParseLayout] reads it
	To     string  `json:"to"`     // the name of the new store, for people
	Count  int     `json:"count"`  // of Nodes
	Nodes  []Floor `json:"nodes"`  // the numbers that were ever granted or reserved, in their order
	SHA256 string  `json:"sha256"` // of this document in JSON without white space and with an empty sha256, in hex
}

func (f Floors) digest() string {
	f.SHA256 = ""
	return cell.Digest(f)
}

// Floor is the limit of one node number: no tick below it is granted by the new store.
type Floor struct {
	Node  int64  `json:"node"`
	Limit uint64 `json:"limit"` // in ticks of the layout
	Until string `json:"until"` // the same as a text for people
}

// floorsFormat is the format of Floors that this version writes and reads.
const floorsFormat = 1

// Export ends a fleet in a store, and returns the floors with which it continues in another
// one. It makes every node number of the layout final by a compare-and-swap: no process is
// granted a tick of this store any more, whatever any clock says. Processes that still run issue
// the rest of their grants, two thirds of a window or more if the store answered before; then
// their calls fail with an error that wraps [ErrMoved], or, if their number was pinned,
// [ErrLost]. to names the new store in these errors, in at most 300 bytes and one line: a URL
// without user, password and options, or a name without the characters @ = ? # %.
//
// Export refuses a store in which a node number is held, with an error that wraps [ErrHeld], and
// changes nothing, unless it has the option [EvenIfRunning]. It writes each node number of the layout once, also
// those that were never claimed: a write that is still in flight could claim them. If it fails or
// ends before its end, call it again: it continues, and always returns the same floors. There is
// no way back to this store and namespace; another namespace of it can be imported to.
//
// It returns soon after ctx ends. If ctx has no deadline, [DefaultTimeout] bounds each operation of
// the store. Other errors are an [*stores.OptionError], or wrap [ErrNeverClaimed] if the store has
// no fleet, [stores.ErrDamaged] for a cell that cannot be read, [stores.ErrConflict] if other
// processes write the same cells all the time, or [ErrStore].
func Export(ctx context.Context, store stores.Store, to string, options ...ExportOption) (Floors, error) {
	if err := checkStore("Export", store); err != nil {
		return Floors{}, err
	}
	if err := cell.CheckTo(to); err != nil {
		return Floors{}, &stores.OptionError{Option: "Export", Err: err}
	}
	var e export
	for i, option := range options {
		if option == nil {
			return Floors{}, &stores.OptionError{Option: "Export", Err: fmt.Errorf("option %d of %d %w", i+1, len(options), drive.ErrNil)}
		}
		option(&e)
	}
	k := newMover(store)
	r, err := k.exportLayout(ctx, to, e.running)
	if err != nil {
		return Floors{}, err
	}
	nodes, err := k.fenceAll(ctx)
	if err != nil {
		return Floors{}, err
	}
	f := Floors{Format: floorsFormat, Export: r.Move.Export, Layout: r.Layout, To: r.Move.Where(), Count: len(nodes), Nodes: nodes}
	f.SHA256 = f.digest()
	return f, nil
}

// ExportOption configures [Export].
type ExportOption func(*export)

type export struct{ running bool }

// EvenIfRunning lets Export end a fleet whose processes still hold node numbers.
func EvenIfRunning() ExportOption { return func(e *export) { e.running = true } }

// exportLayout makes the cell of the layout final, and returns it.
func (k *Keeper) exportLayout(ctx context.Context, to string, running bool) (r cell.Layout, err error) {
	for range drive.InARow {
		version, r, err := k.readLayout(ctx)
		if err == nil && version == 0 {
			err = drive.Wrap(fmt.Sprintf("a node number %v", ErrNeverClaimed), ErrNeverClaimed)
		}
		if err != nil {
			return r, err
		}
		if k.timeline, err = timelineOf(r.Layout); err != nil || r.Move.Exported() {
			return r, err
		}
		if err := movedError(r.Move); err != nil { // half imported
			return r, err
		}
		if err := ready(ctx, &k.calls, running); err != nil {
			return r, err
		}
		r.Move = r.Move.ExportTo(to)
		_, err = k.swapLayout(ctx, version, r)
		switch {
		case err == nil:
			return r, nil
		case !errors.Is(err, stores.ErrConflict): // of unknown outcome
			return r, fmt.Errorf("the fleet was perhaps not exported: try again: %w", err)
		}
	}
	return r, k.busy()
}

// newMover returns a keeper that only reads and writes cells, and has no clock.
func newMover(store stores.Store) *Keeper {
	return &Keeper{config: config{log: slog.Default()}, calls: drive.Calls{Store: store}, random: cell.Token, bad: map[int64]error{}}
}

// timelineOf counts time by the layout of a text.
func timelineOf(spec string) (timeline, error) {
	layout, err := cell.ParseLayout(spec)
	return timeline{layout: layout, spec: spec}, err
}

// ready returns an error if a cell cannot be read, or, unless running, if a node number is held.
func ready(ctx context.Context, calls *drive.Calls, running bool) error {
	holdings, err := inspectAll(ctx, calls)
	if err != nil {
		return err
	}
	var first *Holding
	held := 0
	for i, h := range holdings {
		switch {
		case h.Err != nil:
			return h.Err
		case h.State == Held && !running:
			if held++; first == nil {
				first = &holdings[i]
			}
		}
	}
	if first == nil {
		return nil
	}
	return drive.Wrap(fmt.Sprintf("%d node numbers are held, the first is %d by %q until %s: stop their processes, wait for a window after that if they crashed, or export while they run",
		held, first.Node, first.Owner, first.Limit.UTC().Format(time.RFC3339)), ErrHeld)
}

// fenceAll makes all node numbers final. Those that are held come last, so that their
// processes have the rest of a fresh grant when all is done.
func (k *Keeper) fenceAll(ctx context.Context) (floors []Floor, err error) {
	limits := make(map[int64]uint64)
	var held []grant.Cell
	done := 0
	fence := func(cell grant.Cell) error {
		limit, err := k.fence(ctx, cell)
		if err != nil {
			return fmt.Errorf("%d of %d node numbers are exported, export again to continue: %w", done, k.nodes(), err)
		}
		done++
		if limit > 0 {
			limits[cell.Node] = limit
		}
		return nil
	}
	for from := int64(0); from < k.nodes(); from += fenced {
		cells, err := k.listAll(ctx, from, min(fenced, k.nodes()-from))
		if err != nil {
			return nil, err
		}
		for _, cell := range cells {
			if cell.Record.Holder != "" {
				held = append(held, cell)
			} else if err := fence(cell); err != nil {
				return nil, err
			}
		}
	}
	for _, cell := range held {
		if err := fence(cell); err != nil {
			return nil, err
		}
	}
	for node := range k.nodes() {
		if limit := limits[node]; limit > 0 {
			floors = append(floors, Floor{Node: node, Limit: limit, Until: k.time(limit).Format(timeFormat)})
		}
	}
	return floors, nil
}

// fenced is how many node numbers are listed at a time.
const fenced = 4096

// listAll returns the cells of n numbers from one on, also those that do not exist.
func (k *Keeper) listAll(ctx context.Context, from, n int64) ([]grant.Cell, error) {
	listed, err := k.list(ctx, cell.NodeKey(from), cell.NodeKey(from+n-1)+"\x00", int(n))
	cells := make([]grant.Cell, n)
	for i := range cells {
		cells[i].Node = from + int64(i)
	}
	for _, c := range listed {
		if i := c.Node - from; i >= 0 && i < n {
			cells[i] = c
		}
	}
	return cells, err
}

// fence reserves a number until the end of time, and returns the limit that it had before,
// which the cell keeps as its floor. cell is as a list had it.
func (k *Keeper) fence(ctx context.Context, c grant.Cell) (limit uint64, err error) {
	for range drive.InARow {
		switch was := c.Record; {
		case c.Damaged:
			return 0, cmp.Or(k.bad[c.Node], error(stores.ErrDamaged))
		case was.Reserved && was.Limit == k.end(): // the list may show a write that a crash undoes
			if c, err = k.readCell(ctx, c.Node); err != nil {
				return 0, err
			}
			if was.Write == c.Record.Write {
				return was.Floor, nil
			}
			continue
		default:
			if err = k.swapReserved(ctx, c, was.Limit, k.end(), was.Window); err == nil {
				return was.Limit, nil
			}
			if !errors.Is(err, stores.ErrConflict) {
				return 0, err // of unknown outcome: a second export reads it
			}
		}
		if c, err = k.readCell(ctx, c.Node); err != nil {
			return 0, err
		}
	}
	return 0, k.busy()
}

// Import begins a fleet in a store with the floors of an [Export]: the first grant of each
// number begins at or above its floor, whatever any clock says. Until the clock of a process has
// reached the floor of a number, the process does not claim it, as after [Reserve].
//
// The floors must be as Export returned them, and the namespace must be unused: no node number was
// claimed or reserved in it, and no fleet was exported from it. Else the error is an [*stores.OptionError],
// or wraps [ErrMoved]. No process gets a number before the import is complete. If it fails, call it
// again. A second import of the same floors does nothing. It returns soon after ctx ends. If ctx has
// no deadline, [DefaultTimeout] bounds each operation of the store. Other errors wrap [ErrStore],
// [stores.ErrDamaged], [stores.ErrConflict] if another import ran at the same time, or
// [stores.ErrWentBack] if the store has lost a part of this import meanwhile, which can be a conflict as well.
//
// Import the floors of an export into one store only: two fleets that begin at the same floors
// issue the same IDs.
func Import(ctx context.Context, store stores.Store, floors Floors) error {
	if err := checkStore("Import", store); err != nil {
		return err
	}
	k := newMover(store)
	if err := k.checkFloors(floors); err != nil {
		return err
	}
	_, complete, err := k.importing(ctx, floors.SHA256, false)
	if err != nil || complete {
		return err
	}
	// The version of the layout between a look at all floors and the next: of a store that goes back to before a floor, it is
	// another.
	var between uint64
	for _, again := range []bool{false, true} { // again finds floors that the store has lost meanwhile
		for _, f := range floors.Nodes {
			written, err := k.importFloor(ctx, f)
			if err != nil && !errors.Is(err, ErrStore) { // perhaps by an import that was faster, or in a store that went back
				if _, complete, other := k.importing(ctx, floors.SHA256, true); complete || other != nil {
					return other
				}
			}
			if written && again {
				err = importLost("it had no floor of node number %d any more", f.Node)
			}
			if err != nil {
				return err
			}
		}
		version, complete, err := k.importing(ctx, floors.SHA256, true)
		if err != nil || complete {
			return err
		}
		if again {
			version = between
		}
		between, err = k.swapLayout(ctx, version, cell.Layout{Layout: k.spec, Move: &cell.Move{Import: floors.SHA256, Importing: !again}})
		if err != nil {
			return err // of unknown outcome: a second import repeats it
		}
	}
	return nil
}

func refuseImport(format string, args ...any) error {
	return &stores.OptionError{Option: "Import", Err: fmt.Errorf(format, args...)}
}

func importLost(format string, args ...any) error {
	return fmt.Errorf("%w during the import: %s: look for duplicate IDs if a process has started on it, and import again, into another namespace if this one is refused",
		stores.ErrWentBack, fmt.Sprintf(format, args...))
}

// checkFloors returns an error unless an export has returned the floors, and takes their layout over.
func (k *Keeper) checkFloors(floors Floors) (err error) {
	k.timeline, err = timelineOf(floors.Layout)
	switch {
	case floors.Format > floorsFormat:
		return refuseImport("floors of format %d, which a newer version of tickflake exported: upgrade this process", floors.Format)
	case floors.Format != floorsFormat || floors.Export == "":
		return refuseImport("floors of format %d with the export %q: they are not those of an export", floors.Format, floors.Export)
	case err != nil:
		return refuseImport("%w", err)
	}
	least := int64(0)
	for _, f := range floors.Nodes {
		if f.Node < least || f.Node >= k.nodes() || f.Limit < 1 || f.Limit > k.end() {
			return refuseImport("node number %d with limit %d: want each number once, in order, from %d to %d, and ticks from 1 to %d", f.Node, f.Limit, least, k.nodes()-1, k.end())
		}
		least = f.Node + 1
	}
	if digest := floors.digest(); floors.SHA256 != digest {
		return refuseImport("the SHA-256 of the floors is %s, and they say %q: they were cut or edited: export again, which gives the same floors", digest, floors.SHA256)
	}
	return nil
}

// importing reads the cell of the layout, which it makes if the import has not begun, and reports
// whether the import is complete.
func (k *Keeper) importing(ctx context.Context, digest string, begun bool) (version uint64, complete bool, err error) {
	version, r, err := k.readLayout(ctx)
	if err == nil && version == 0 && !begun {
		r = k.newLayout()
		r.Move = &cell.Move{Import: digest, Importing: true}
		version, err = k.swapLayout(ctx, 0, r)
	}
	switch {
	case err != nil:
	case r.Move.Exported():
		err = movedError(r.Move)
	case r.Move.ImportOf() == digest:
		complete = !r.Move.Importing
	case begun:
		err = importLost("it is empty or of another use, with the layout %q", r.Layout)
	default:
		err = refuseImport("this namespace was used before, or began with other floors, with the layout %s: import into an unused one", r.Layout)
	}
	return version, complete, err
}

// importFloor reserves a number until its floor, unless it has that.
func (k *Keeper) importFloor(ctx context.Context, f Floor) (written bool, err error) {
	c, err := k.readCell(ctx, f.Node)
	switch {
	case err != nil:
		return false, err
	case c.Damaged:
		return false, k.bad[f.Node]
	case c.Version != 0 && !c.Record.Reserved:
		return false, refuseImport("node number %d was granted in this namespace before: import into an unused one", f.Node)
	case c.Record.Limit >= f.Limit:
		return false, nil // by an import that ended early
	}
	err = k.swapReserved(ctx, c, f.Limit, f.Limit, 0)
	return err == nil, err
}

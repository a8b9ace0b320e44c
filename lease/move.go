package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// Floors says where each node number of a fleet begins in another store: [Export] makes it, and
// [Import] takes it. Its JSON form is a file for people and programs.
type Floors struct {
	Format int     `json:"format"` // of this document: 1
	Export string  `json:"export"` // the random name of the export
	Layout string  `json:"layout"` // of the IDs, as [snowflake.ParseLayout] reads it
	To     string  `json:"to"`     // the name of the new store, for people
	Nodes  []Floor `json:"nodes"`  // the numbers that were ever granted or reserved
}

// Floor is the limit of one node number: no tick below it is granted by the new store.
type Floor struct {
	Node  int64  `json:"node"`
	Limit uint64 `json:"limit"` // in ticks of the layout
	Until string `json:"until"` // the same as a text for people, which must agree; or empty
}

// floorsFormat is the format of Floors that this version writes and reads.
const floorsFormat = 1

// Export ends a fleet in a store, and returns the floors with which it continues in another
// one. It makes every node number of the layout final by a compare-and-swap: no process is
// granted a tick of this store any more, whatever any clock says. Processes that still run issue
// the rest of their grants, two thirds of a window or more if the store answered before; then
// their calls fail with an error that wraps [ErrMoved], or, if their number was pinned,
// [ErrLost]. to names the new store in these errors, without a password, in at most 100 bytes.
//
// Unless running is true, Export refuses a store in which a node number is held, with an error
// that wraps [ErrHeld], and changes nothing. It writes each node number of the layout once, also
// those that were never claimed: a write that is still in flight could claim them. If it fails or
// ends before its end, call it again: it continues, and always returns the same floors. There is
// no way back to this store and namespace; another namespace of it can be imported to.
//
// It returns soon after ctx ends, and has no other bound: give ctx a deadline. Other errors are an
// [*OptionError], or wrap [ErrNeverClaimed] if the store
// has no fleet, [stores.ErrDamaged] for a cell that cannot be read, or [ErrStore].
func Export(ctx context.Context, store stores.Store, to string, running bool) (Floors, error) {
	if err := checkArguments("Export", ctx, store); err != nil {
		return Floors{}, err
	}
	if to == "" || len(to) > protocol.MaxTo {
		return Floors{}, &OptionError{"Export", fmt.Errorf("name of the new store of %d bytes: want 1 to %d", len(to), protocol.MaxTo)}
	}
	k := newMover(store)
	cell, r, err := k.fleet(ctx)
	if err != nil {
		return Floors{}, err
	}
	if !r.Move.Exported() {
		if err := movedError(r.Move); err != nil { // half imported
			return Floors{}, err
		}
		if err := ready(ctx, store, running); err != nil {
			return Floors{}, err
		}
		r.Move = r.Move.ExportTo(to)
		_, err := k.swapKey(ctx, protocol.LayoutKey, cell.Version, r.Encode())
		if errors.Is(err, stores.ErrConflict) { // another export was faster
			return Export(ctx, store, to, running)
		}
		if err != nil {
			return Floors{}, fmt.Errorf("the fleet was perhaps not exported: try again: %w", err)
		}
	}
	nodes, err := k.fenceAll(ctx)
	if err != nil {
		return Floors{}, err
	}
	return Floors{Format: floorsFormat, Export: r.Move.Export, Layout: r.Layout, To: r.Move.To, Nodes: nodes}, nil
}

// newMover returns a keeper that only reads and writes cells, and has no clock.
func newMover(store stores.Store) *Keeper {
	return &Keeper{config: config{store: store, timeout: DefaultTimeout, log: slog.Default()}, random: protocol.Token, bad: map[int64]error{}}
}

// fleet reads the cell of the layout of a store that has one, and takes its layout over.
func (k *Keeper) fleet(ctx context.Context) (cell stores.Cell, r protocol.LayoutRecord, err error) {
	cell, err = k.readKey(ctx, protocol.LayoutKey)
	switch {
	case err != nil:
		return cell, r, err
	case cell.Version == 0:
		return cell, r, &wrapped{text: fmt.Sprintf("a node number %v", ErrNeverClaimed), errs: []error{ErrNeverClaimed}}
	}
	r, err = protocol.DecodeLayout(cell.Value)
	if err == nil {
		k.timeline, err = timelineOf(r.Layout)
	}
	if err != nil {
		err = fmt.Errorf("cell of the layout: %w", err)
	}
	return cell, r, err
}

// timelineOf counts time by the layout of a text.
func timelineOf(spec string) (timeline, error) {
	layout, err := snowflake.ParseLayout(spec)
	if err != nil {
		err = fmt.Errorf("%w: its layout is %.200q: %w", stores.ErrDamaged, spec, err)
	}
	return timeline{layout: layout, spec: spec}, err
}

// ready returns an error if a cell cannot be read, or, unless running, if a node number is held.
func ready(ctx context.Context, store stores.Store, running bool) error {
	holdings, err := inspectAll(ctx, store, time.Now)
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
	return &wrapped{
		text: fmt.Sprintf("%d node numbers are held, the first is %d by %s until %s: stop their processes, or, if they ended without a release, wait for a window after that; or export while they run",
			held, first.Node, first.Owner, first.Limit.UTC().Format(time.RFC3339)),
		errs: []error{ErrHeld},
	}
}

// fenceAll makes all node numbers final. Those that are held come last, so that their
// processes have the rest of a fresh grant when all is done.
func (k *Keeper) fenceAll(ctx context.Context) (floors []Floor, err error) {
	limits := make(map[int64]uint64)
	var held []protocol.Cell
	done := 0
	fence := func(cell protocol.Cell) error {
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
	for p := (&probe{search: protocol.NewSearch(k.nodes(), 0)}); p.search.Done < k.nodes(); {
		cells, err := k.nextBlock(ctx, p)
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

// fence reserves a number until the end of time, and returns the limit that it had before,
// which the cell keeps as its floor. cell is as a list had it.
func (k *Keeper) fence(ctx context.Context, cell protocol.Cell) (limit uint64, err error) {
	for range roundsInARow {
		switch was := cell.Record; {
		case cell.Damaged:
			return 0, k.bad[cell.Node]
		case was.Reserved && was.Limit == k.end(): // the list may show a write that a crash undoes
			if cell, err = k.readCell(ctx, cell.Node); err != nil {
				return 0, err
			}
			if was == cell.Record {
				return was.Floor, nil
			}
			continue
		default:
			r := protocol.Record{Floor: was.Limit, Limit: k.end(), Window: was.Window, Reserved: true, Write: k.random(), Layout: k.spec}
			_, err = k.swapKey(ctx, protocol.NodeKey(cell.Node), cell.Version, k.encode(r))
			if err == nil {
				return was.Limit, nil
			}
			if !errors.Is(err, stores.ErrConflict) {
				return 0, err // of unknown outcome: a second export reads it
			}
		}
		if cell, err = k.readCell(ctx, cell.Node); err != nil {
			return 0, err
		}
	}
	return 0, k.busy()
}

// Import begins a fleet in a store with the floors of an [Export]: the first grant of each
// number begins at or above its floor, whatever any clock says. Until the clock of a process has
// reached the floor of a number, the process does not claim it, as after [Reserve].
//
// The namespace must be unused: no node number was claimed or reserved in it, and no fleet was
// exported from it. Else the error is an [*OptionError], or wraps [ErrMoved]. No process gets a
// number before the import is complete. If it fails, call it again. A second import of the same
// floors does nothing. It returns soon after ctx ends, or when an operation of the store takes
// longer than [DefaultTimeout]. Other errors wrap [ErrStore], [stores.ErrDamaged], or
// [stores.ErrConflict] if another import ran at the same time.
//
// Import the floors of an export into one store only: two fleets that begin at the same floors
// issue the same IDs.
func Import(ctx context.Context, store stores.Store, floors Floors) error {
	if err := checkArguments("Import", ctx, store); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &OptionError{"Import", fmt.Errorf(format, args...)}
	}
	k := newMover(store)
	var err error
	k.timeline, err = timelineOf(floors.Layout)
	switch {
	case floors.Format > floorsFormat:
		return refuse("floors of format %d, and this process reads format %d: a newer version of tickflake exported them: upgrade this process", floors.Format, floorsFormat)
	case floors.Format != floorsFormat || floors.Export == "":
		return refuse("floors of format %d with the export %q: they are not those of an export", floors.Format, floors.Export)
	case err != nil:
		return refuse("%w", err)
	}
	for _, f := range floors.Nodes {
		if f.Node < 0 || f.Node >= k.nodes() || f.Limit < 1 || f.Limit > k.end() {
			return refuse("node number %d with limit %d: the layout has numbers to %d and ticks from 1 to %d", f.Node, f.Limit, k.nodes()-1, k.end())
		}
		if until := k.time(f.Limit).Format(timeFormat); f.Until != "" && f.Until != until {
			return refuse("node number %d with limit %d, which is %s and not %s: the floors were damaged or edited", f.Node, f.Limit, until, f.Until)
		}
	}
	complete, err := k.beginImport(ctx, floors, refuse)
	if err != nil || complete {
		return err
	}
	for _, f := range floors.Nodes {
		if err := k.importFloor(ctx, f, refuse); err != nil {
			return err
		}
	}
	cell, r, err := k.fleet(ctx)
	if err != nil || r.Move.ImportOf() != floors.Export || !r.Move.Importing {
		return err // another import of the same floors has completed it
	}
	r.Move = &protocol.Move{Import: floors.Export}
	_, err = k.swapKey(ctx, protocol.LayoutKey, cell.Version, r.Encode())
	return err // of unknown outcome: a second import repeats it
}

// beginImport marks the store as one that is imported to, or reports that it was before.
func (k *Keeper) beginImport(ctx context.Context, floors Floors, refuse func(string, ...any) error) (complete bool, err error) {
	cell, err := k.readKey(ctx, protocol.LayoutKey)
	if err != nil {
		return false, err
	}
	if cell.Version == 0 {
		r := protocol.LayoutRecord{Layout: k.spec, Move: &protocol.Move{Import: floors.Export, Importing: true}}
		_, err := k.swapKey(ctx, protocol.LayoutKey, 0, r.Encode())
		return false, err
	}
	r, err := protocol.DecodeLayout(cell.Value)
	switch {
	case err != nil:
		return false, fmt.Errorf("cell of the layout: %w", err)
	case r.Move.Exported():
		return false, movedError(r.Move)
	case r.Move.ImportOf() != floors.Export:
		return false, refuse("this namespace was used before, for the layout %s: import into an unused one", r.Layout)
	}
	return !r.Move.Importing, nil
}

// importFloor reserves a number until its floor.
func (k *Keeper) importFloor(ctx context.Context, f Floor, refuse func(string, ...any) error) error {
	cell, err := k.readCell(ctx, f.Node)
	switch {
	case err != nil:
		return err
	case cell.Damaged:
		return k.bad[f.Node]
	case cell.Version != 0 && !cell.Record.Reserved:
		return refuse("node number %d was granted in this namespace before: import into an unused one", f.Node)
	case cell.Record.Limit >= f.Limit && cell.Version != 0:
		return nil // by an import that ended early
	}
	r := protocol.Record{Floor: f.Limit, Limit: f.Limit, Reserved: true, Write: k.random(), Layout: k.spec}
	_, err = k.swapKey(ctx, protocol.NodeKey(f.Node), cell.Version, k.encode(r))
	return err
}

package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
)

// Floor says where a sequence begins in another store: [Export] makes it, and [Import] takes
// it. Its JSON form is a file for people and programs.
type Floor struct {
	Format     int        `json:"format"`     // of this document: 1
	Export     string     `json:"export"`     // the random name of the export
	Name       string     `json:"name"`       // of the sequence
	Definition Definition `json:"definition"` // as it is now
	Created    Definition `json:"created"`    // as it was created: programs may still open it so
	To         string     `json:"to"`         // the name of the new store, for people
	// Index counts the numbers that were granted: that of an index is the start, plus the
	// offset, plus the index times the stride. No number of a lower index is granted again.
	Index uint64 `json:"index"`
	// Before is one above the highest number that was granted of sequences of this name that were
	// deleted, or 0.
	Before uint64 `json:"before,omitempty"`
	// Next is the number of Index, for people, or 0 if none is left.
	Next int64 `json:"next"`
	// Deleted says that the sequence is a period that was deleted: it is not made anew on demand.
	Deleted bool `json:"deleted,omitempty"`
	// Periods has the periods of a sequence by period, the newest first.
	Periods []Floor `json:"periods,omitempty"`
	// SHA256 is that of this document in JSON without white space and with an empty sha256, in hex.
	SHA256 string `json:"sha256"`
}

func (f Floor) digest() string {
	f.SHA256 = ""
	return cell.Digest(f)
}

// floorFormat is the format of a Floor that this version writes and reads.
const floorFormat = 1

// Export ends a sequence in a store, and returns the floor with which it continues in another
// one. One compare-and-swap makes the sequence final: no process is granted a number of it any
// more. Processes that still run hand out the numbers that they have reserved; then their calls
// fail with an error that wraps [ErrMoved]. So does [Open]. to names the new store in these
// errors, in at most 300 bytes and one line: a URL without user, password and options, or a name
// without the characters @ = ? # %.
//
// It may be called while processes run. A second call returns the same floor. There is no way
// back to this store and namespace; another namespace of it can be imported to. Numbers that
// processes have reserved cannot be given back any more: close them before, or they are missing.
// A sequence by period takes its periods along, and none of them is exported by itself, unless it is by
// period as well.
//
// It returns soon after ctx ends. If ctx has no deadline, [DefaultTimeout] bounds each operation
// of the store. The error is an [*stores.OptionError], or wraps [ErrNotFound], [stores.ErrWentBack] if
// the store lost writes and [Set] has not raised the next number since, [stores.ErrDamaged],
// [stores.ErrConflict] if other processes write so often that it did not get a turn, or
// [ErrStore].
func Export(ctx context.Context, store stores.Store, name, to string) (Floor, error) {
	a, err := newAdmin(ctx, store, name)
	if err != nil {
		return Floor{}, err
	}
	if err := cell.CheckTo(to); err != nil {
		return Floor{}, &stores.OptionError{Option: "to", Err: err}
	}
	if d, err := a.definition(ctx); err != nil || d.Record.Period != "" && !d.Record.Deleted && !d.Record.Move.Exported() {
		return Floor{}, cmp.Or(err, error(&stores.OptionError{Option: "name", Err: fmt.Errorf("%q is a period: export %s, which takes its periods along", name, a.base())}))
	}
	f, r, err := a.export(ctx, to)
	if err == nil && r.Period != "" {
		f.Periods, err = a.exportPeriods(ctx, r, to)
	}
	if err != nil {
		return Floor{}, err
	}
	f.SHA256 = f.digest()
	return f, nil
}

// export ends the sequence of one cell.
func (a *admin) export(ctx context.Context, to string) (f Floor, r cell.Sequence, err error) {
	final := func(r cell.Sequence) (cell.Sequence, error) {
		if r.Lost {
			return r, lostError(a.name, r)
		}
		r.Move = r.Move.ExportTo(to)
		return r, nil
	}
	for range drive.InARow { // more than other changes: processes that get numbers write all the time
		if _, r, err = a.change(ctx, final); !errors.Is(err, stores.ErrConflict) {
			break
		}
	}
	if err != nil && !errors.Is(err, ErrMoved) { // before, or by a write of ours of unknown outcome
		return f, r, err
	}
	f = Floor{Format: floorFormat, Export: r.Move.Export, Name: a.name, Definition: definitionOf(r), To: r.Move.Where(), Index: r.Next, Before: r.Before, Next: infoOf(a.name, r).Next, Deleted: r.Deleted}
	f.Created = f.Definition
	f.Created.Max, f.Created.MinStep, f.Created.MaxStep = r.Created[0], r.Created[1], r.Created[2]
	return f, r, nil
}

// exportPeriods ends the periods of a definition that was exported: those of its list, and those that
// were created before it.
func (a *admin) exportPeriods(ctx context.Context, r cell.Sequence, to string) (floors []Floor, err error) {
	if r.Newest != "" { // a process may be about to make it
		if _, err := a.of(periodName(a.name, r.Newest)).makePeriod(ctx, r); err != nil {
			return nil, err
		}
	}
	done := map[string]bool{}
	export := func(name string) (older string, err error) {
		done[name] = true
		period := a.of(name)
		period.deleted = true
		found, err := readCell(ctx, &period.calls, name)
		if err != nil || found.Record.Period != "" { // it has periods of its own, and is exported by itself
			return found.Record.Older, err
		}
		f, r, err := period.export(ctx, to)
		if err == nil {
			f.SHA256 = f.digest()
			floors = append(floors, f)
		}
		return r.Older, err
	}
	for newest := r.Newest; newest != "" && !done[periodName(a.name, newest)]; {
		if newest, err = export(periodName(a.name, newest)); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	err = a.calls.All(ctx, cell.SequenceKey(a.name+"."), cell.SequenceKey(a.name+"/"), func(found stores.Cell) error {
		name, _ := cell.SequenceOf(found.Key)
		if period := name[len(a.name)+1:]; done[name] || Period(r.Period).check(period, true) != nil {
			return nil
		}
		_, err := export(name)
		return err
	})
	return floors, err
}

// Import begins a sequence in a store with the floor of an [Export]: the next number is that of
// the floor. It creates the sequence with the same definition, or takes
// one that exists with the same definition if no number of it was ever granted. Programs that
// open the sequence with their definition need no change.
//
// If the sequence cannot be taken, the error is an [*stores.OptionError], a [*DefinitionError], or wraps
// [ErrMoved] if it was moved on from this store; nothing is changed. A second import of the same
// floor changes nothing, and never sets the sequence back. It returns soon after ctx ends. If
// ctx has no deadline, [DefaultTimeout] bounds each operation of the store. Other errors wrap
// [stores.ErrDamaged] or [ErrStore]; after that, call it again.
//
// Import a floor into one store only: two sequences that begin at the same floor issue the same
// numbers.
func Import(ctx context.Context, store stores.Store, floor Floor) error {
	a, err := newAdmin(ctx, store, floor.Name)
	if err == nil {
		err = floor.check()
	}
	if err != nil {
		return err
	}
	for range 2 { // again makes what the store has lost meanwhile, or a process would make a period from its start
		// The definition comes last: before it, no period is made on demand.
		var newest, older string
		for _, period := range slices.Backward(floor.Periods) {
			if err := a.of(period.Name).begin(ctx, period, "", newest); err != nil {
				return err
			}
			newest, older = period.Name[len(floor.Name)+1:], newest
		}
		if err := a.begin(ctx, floor, newest, older); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless the floor is as an export made it.
func (f Floor) check() error {
	d, created := f.Definition.complete(), f.Created.complete()
	switch {
	case f.Format > floorFormat:
		return badFloor("its format is %d, and this process reads format %d: a newer version of tickflake exported it: upgrade this process", f.Format, floorFormat)
	case f.Format != floorFormat || f.Export == "":
		return badFloor("its format is %d with the export %q: it is not that of an export", f.Format, f.Export)
	case d.check() != nil:
		return badFloor("%w", d.check())
	case d.Mode != created.Mode || d.Start != created.Start || d.Stride != created.Stride || d.Period != created.Period:
		return badFloor("its definition is %s, and was %s: mode, start, stride and period never change", d, created)
	case f.Index > cell.MaxIndex || f.Before > 1<<63:
		return badFloor("its index is %d, and it says that numbers up to %d were granted before: no sequence gets there", f.Index, f.Before)
	case f.SHA256 != f.digest():
		return badFloor("its SHA-256 is %s, and it says %q: it was damaged or edited: export again, which gives the same floor", f.digest(), f.SHA256)
	}
	for _, period := range f.Periods {
		name, ok := strings.CutPrefix(period.Name, f.Name+".")
		if err := cmp.Or(CheckName(period.Name), d.Period.check(name, true), period.check()); err != nil || !ok || len(period.Periods) > 0 {
			return badFloor("its period %.70q: %w", period.Name, cmp.Or(err, errors.New("want one of its own periods")))
		}
	}
	return nil
}

func badFloor(format string, args ...any) error {
	return &stores.OptionError{Option: "floor", Err: fmt.Errorf(format, args...)}
}

// begin begins the sequence of one cell with a floor, and with the periods that stand in the cell.
func (a *admin) begin(ctx context.Context, floor Floor, newest, older string) error {
	d, created := floor.Definition.complete(), floor.Created.complete()
	_, _, err := a.rewrite(ctx, func(found count.Cell) (cell.Sequence, error) {
		r := found.Record
		switch {
		case found.Version == 0:
			r = cell.Sequence{
				ID: cell.Token(), Creation: 1, Mode: d.Mode.String(), Start: d.Start, Stride: d.Stride.by, Offset: d.Stride.offset,
				Created: [3]int64{created.Max, created.MinStep, created.MaxStep}, Period: string(d.Period),
			}
		case r.Move.Exported():
			return r, movedError(a.name, r)
		case r.Move.ImportOf() == floor.SHA256 && (floor.Deleted || !r.Deleted):
			return r, errDone // imported before
		case r.Deleted || r.Move != nil || r.Most > 0 || r.Newest != "":
			return r, badFloor("sequence %q had numbers in this namespace before, or was imported or deleted here: import into another namespace", a.name)
		case !same(d, definitionOf(r), r.Created) && !same(created, definitionOf(r), r.Created):
			return r, &DefinitionError{Name: a.name, Ours: d, Theirs: definitionOf(r)}
		}
		r.Max, r.MinStep, r.MaxStep = d.Max, d.MinStep, d.MaxStep
		r.Next, r.Before = floor.Index, max(r.Before, floor.Before)
		r.Newest, r.Older, r.Deleted, r.Move = newest, older, floor.Deleted, &cell.Move{Import: floor.SHA256}
		return r, nil
	})
	return err
}

package sequence

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
)

// Info is the state of a sequence in a store.
type Info struct {
	Name       string
	Definition Definition // with its defaults filled in
	Next       int64      // the number that the next grant begins with, or 0 if none is left, or if it is by period
	Last       int64      // the highest number granted and not given back; one stride below the first if there is none
	Granted    int64      // the highest number ever granted to this name, also if it was given back; -1 if there is none
	Left       int64      // numbers from Next to the maximum; 0 if it is by period
	Writes     uint64     // how often the sequence was written
	WentBack   bool       // the store lost writes: no number is granted until [Set] raises Next
}

// Continued is the definition with which the sequence goes on in another store, once [Delete] has returned
// this state: it starts at the next number, or, if it is by period, as before. ok is false if no number
// is left.
func (i Info) Continued() (d Definition, ok bool) {
	d = i.Definition
	if !d.hasMax() {
		d.Max = 0 // or it would be the last that this one can reach
	}
	if d.Period == (Period{}) {
		d.Start = i.Next - d.Stride.Offset()
		d.FromZero = d.Start == 0
	}
	return d, d.Period != (Period{}) || i.Left > 0
}

// Create creates a sequence. It does nothing if the sequence exists with the same definition, as it was created
// or as it is now; with another one the error is a [*DefinitionError]. The definition of a period, such as
// "orders.2027", is that of its sequence without the Period.
//
// A sequence that was deleted can be created anew, also with another definition. It begins above every number
// that the deleted ones of its name were granted: a process may hold some of these for days, and issue them
// without a look at the store. If none is left up to the maximum, the error is an [*stores.OptionError].
//
// The errors of Create, [Inspect], [List], [Set] and [Delete] are an *stores.OptionError if an argument is out
// of range or nil, or wrap [ErrStore], or [stores.ErrDamaged] for a cell that cannot be read. These functions
// are safe for use by several goroutines at once.
func Create(ctx context.Context, store stores.Store, name string, d Definition) error {
	a, err := remoteOf(store, name, 0)
	if err != nil {
		return err
	}
	_, err = a.create(ctx, d, creation{})
	return err
}

type creation struct {
	onDemand bool // it is not asked for by name: one that was deleted is taken as it is,
	period   bool // and a period also if it has another definition
}

// Inspect returns the state of a sequence. The error wraps [ErrNotFound] if there is none.
func Inspect(ctx context.Context, store stores.Store, name string) (Info, error) {
	a, err := remoteOf(store, name, 0)
	if err != nil {
		return Info{}, err
	}
	cell, err := a.find(ctx)
	if err != nil {
		return Info{}, err
	}
	return infoOf(name, cell.Record), nil
}

// List returns the state of all sequences of the store, in the order of their names. It may
// be out of date, as [stores.Store] says. If cells are damaged, the error wraps
// [stores.ErrDamaged], and comes with the others.
func List(ctx context.Context, store stores.Store) ([]Info, error) {
	if _, err := remoteOf(store, "any", 0); err != nil {
		return nil, err
	}
	var infos []Info
	calls := drive.Calls{Store: store, What: "sequences"}
	err := calls.All(ctx, cell.SequencesFrom, cell.SequencesTo, func(found stores.Cell) error {
		name, _ := cell.SequenceOf(found.Key)
		c, err := decode(name, found)
		if err == nil && !c.Record.Deleted {
			infos = append(infos, infoOf(name, c.Record))
		}
		return err
	})
	return infos, err
}

// Change says what [Set] changes. A field that is 0 stays as it is.
type Change struct {
	// Next is the number that the next grant begins with. If the stride skips it, the grant
	// begins with the first one above it. It is never lowered. After the store went back, give
	// a Next above all numbers that were granted before: that makes the sequence usable again.
	Next int64
	// Max is the last number that may be issued, math.MaxInt64 for none. It is not below a
	// number that is granted already.
	Max int64
	// MinStep and MaxStep are those of [Definition].
	MinStep, MaxStep int64
}

// Set changes a sequence while processes use it, and returns its state before and after.
// Each process sees the change at its next refill, and goes on with the numbers that it has
// reserved until then. The error wraps [ErrLowered] if the change would grant a number twice,
// and [ErrNotFound] if there is no such sequence; then nothing is changed.
func Set(ctx context.Context, store stores.Store, name string, change Change) (before, after Info, err error) {
	a, err := remoteOf(store, name, 0)
	if err == nil && change == (Change{}) {
		err = &stores.OptionError{Option: "change", Err: errors.New("nothing is to be changed: give at least one field")}
	}
	if err != nil {
		return Info{}, Info{}, err
	}
	was, is, err := a.rewrite(ctx, func(found count.Cell) (cell.Sequence, error) {
		if found.Version == 0 || found.Record.Deleted {
			return found.Record, a.missing(ctx, found)
		}
		return changed(name, found.Record, change)
	})
	if err != nil {
		return Info{}, Info{}, err
	}
	return infoOf(name, was.Record), infoOf(name, is.Record), nil
}

// Delete deletes a sequence, and returns its last state. Processes that use it issue the numbers that they have
// reserved, and stop at their next refill with an error that wraps [ErrDeleted]. The store keeps a small cell,
// so that a sequence that [Create] makes anew begins above these numbers. The error wraps [ErrNotFound] if
// there is no such sequence, and [stores.ErrWentBack] if the store lost writes and [Set] has not raised the
// next number since.
//
// No number from Next on was granted, and none will be: so a sequence with [Info.Continued] in another store
// goes on where this one ends, while processes still use up what they have reserved. Continue it in one place
// only, and do not create it here again. Until it is created again, a second call returns the same.
func Delete(ctx context.Context, store stores.Store, name string) (Info, error) {
	a, err := remoteOf(store, name, 0)
	if err != nil {
		return Info{}, err
	}
	_, is, err := a.rewrite(ctx, func(found count.Cell) (cell.Sequence, error) {
		r := found.Record
		switch {
		case found.Version == 0:
			return r, a.missing(ctx, found)
		case r.Deleted:
			return r, errDone
		case r.Lost: // the next sequence of this name would begin too low
			return r, lostError(name, r, marked)
		}
		r.Deleted = true
		return r, nil
	})
	if err != nil {
		return Info{}, err
	}
	return infoOf(name, is.Record), nil
}

// find reads the cell of a sequence that exists.
func (a *remote) find(ctx context.Context) (count.Cell, error) {
	found, err := a.read(ctx)
	if err == nil && (found.Version == 0 || found.Record.Deleted) {
		err = a.missing(ctx, found)
	}
	return found, err
}

// missing is the error for a sequence that was not created, or was deleted.
func (a *remote) missing(ctx context.Context, found count.Cell) error {
	if found.Version != 0 {
		return a.gone()
	}
	if d, err := a.definition(ctx); err == nil && a.isPeriod(d.Record) {
		return drive.Wrap(fmt.Sprintf("sequence %q: %v: its first number makes it, by the definition of %[3]s: take one, or change %[3]s", a.name, ErrNotFound, a.base()), ErrNotFound, ErrByPeriod)
	}
	return a.notFound()
}

// gone is the error for a sequence that was deleted.
func (a *remote) gone() error {
	return drive.Wrap(fmt.Sprintf("sequence %q: %v in this store: open it in the store that continues it, or create it anew by its name", a.name, ErrDeleted), ErrNotFound, ErrDeleted)
}

func (a *remote) notFound() error {
	return fmt.Errorf("sequence %q: %w in this store: create it, or check the store and the namespace", a.name, ErrNotFound)
}

func (a *remote) create(ctx context.Context, d Definition, c creation) (count.Cell, error) {
	d = d.complete()
	if err := d.check(); err != nil {
		return count.Cell{}, &stores.OptionError{Option: "definition", Err: err}
	}
	if d.Period != (Period{}) {
		if err := ValidateName(periodName(a.name, d.Period.example())); err != nil {
			return count.Cell{}, err
		}
	}
	_, made, err := a.rewrite(ctx, func(found count.Cell) (cell.Sequence, error) {
		was := found.Record
		exists, theirs := found.Version != 0 && !was.Deleted, definitionOf(was)
		switch {
		case c.onDemand && was.Deleted, c.period && found.Version != 0:
			return was, errDone
		case exists && !same(d, theirs, was.Created):
			return was, &DefinitionError{Name: a.name, Ours: d, Theirs: theirs}
		case exists:
			return was, errDone
		}
		if !c.period && d.Period == (Period{}) { // perhaps a period
			if err := a.asDefined(ctx, d, was.Deleted); err != nil {
				return was, err
			}
		}
		r := cell.Sequence{
			ID: cell.Token(), Creation: was.Creation + 1, Mode: string(d.Mode), Start: d.Start, Stride: d.Stride.by, Offset: d.Stride.offset,
			Max: d.Max, MinStep: d.MinStep, MaxStep: d.MaxStep, Created: [3]int64{d.Max, d.MinStep, d.MaxStep}, Before: was.Granted(),
			Period: d.Period.text,
		}
		if r.Next = r.Index(r.Before); r.Left() == 0 {
			return was, &stores.OptionError{Option: "definition", Err: fmt.Errorf("sequence %q was deleted after numbers up to %d were granted, and none is left above them up to the maximum %d: give a higher maximum or another name", a.name, r.Before-1, d.Max)}
		}
		return r, nil
	})
	return made, err
}

// errDone says that a cell is as it is to be.
var errDone = errors.New("done")

// rewrite writes the cell as next has it, given what it is: again after a conflict, and not if next
// returns an error, or errDone. After a write of unknown outcome it reads the cell once.
func (a *remote) rewrite(ctx context.Context, next func(count.Cell) (cell.Sequence, error)) (was, is count.Cell, err error) {
	var unknown error
	for tries := 0; tries < drive.InARow || unknown != nil; tries++ {
		found, err := a.read(ctx)
		if err == nil && is.Record.Write != "" && found.Record.Write == is.Record.Write {
			return was, found, nil // the write has landed
		}
		r := found.Record
		if err == nil {
			r, err = next(found)
		}
		switch {
		case err == errDone:
			return found, found, nil
		case unknown != nil: // it has not landed so far, or that is unknown
			return was, is, unknown
		case err != nil:
			return found, found, err
		}
		if found.Version == 0 {
			if err := a.store.Probe(ctx); err != nil {
				return found, found, err
			}
		}
		r.From, r.Most = r.Next, max(r.Most, r.Next)
		r.Writes, r.Write, r.Last = found.Record.Writes+1, cell.Token(), found.Record.Names()
		was, is = found, count.Cell{Record: r}
		is.Version, err = a.swap(ctx, found.Version, r)
		switch {
		case err == nil:
			return was, is, nil
		case !errors.Is(err, stores.ErrConflict):
			unknown = err
		}
	}
	return was, is, drive.Busy(fmt.Sprintf("sequence %q: %d writes in a row met those of other processes: try again", a.name, drive.InARow))
}

// changed applies a change to a record.
func changed(name string, r cell.Sequence, c Change) (cell.Sequence, error) {
	refuse := func(field string, format string, args ...any) (cell.Sequence, error) {
		return r, &stores.OptionError{Option: field, Err: fmt.Errorf(format, args...)}
	}
	lowered := func(format string, args ...any) (cell.Sequence, error) {
		return r, fmt.Errorf("sequence %q: %w: %s", name, ErrLowered, fmt.Sprintf(format, args...))
	}
	d := definitionOf(r)
	switch c.Max {
	case 0:
	case math.MaxInt64:
		d.Max = d.end()
	default:
		d.Max = c.Max
	}
	if c.MinStep != 0 {
		d.MinStep = c.MinStep
	}
	if c.MaxStep != 0 {
		d.MaxStep = c.MaxStep
	}
	if err := d.check(); err != nil {
		return refuse("change", "%w", err)
	}
	if d.Max < r.LastNumber() {
		return lowered("the maximum %d is below %d, and all numbers up to that may be granted already: give %d or more", d.Max, r.LastNumber(), r.LastNumber())
	}
	r.Max, r.MinStep, r.MaxStep = d.Max, d.MinStep, d.MaxStep
	if c.Next == 0 {
		return r, nil
	}
	if r.Period != "" {
		return r, byPeriodError(name, r)
	}
	if c.Next < 0 || c.Next > r.Max {
		return refuse("Next", "%d: want a number up to the maximum %d; for a higher one, raise the maximum as well", c.Next, r.Max)
	}
	if c.Next < d.First() {
		return lowered("%d is below the first number: give %d or more", c.Next, d.First())
	}
	index := r.Index(uint64(c.Next))
	switch {
	case index < r.Next:
		return lowered("%d is below %d, and all numbers below that may be granted already: give %d or more", c.Next, r.Number(r.Next), r.Number(r.Next))
	case index >= r.Indexes():
		return refuse("Next", "%d: the sequence has no number from there to the maximum %d: give a lower one, or raise the maximum as well", c.Next, r.Max)
	}
	if r.Lost { // numbers below may be those of any sequence that the cell ever had
		r.Before = max(r.Before, uint64(r.Number(index)))
	}
	r.Next, r.Lost = index, false
	return r, nil
}

// same reports whether a sequence that was created with the max and steps of created, and
// has the definition theirs now, is the one of d.
func same(d, theirs Definition, created [3]int64) bool {
	original := theirs
	original.Max, original.MinStep, original.MaxStep = created[0], created[1], created[2]
	return d == theirs || d == original
}

func definitionOf(r cell.Sequence) Definition {
	return Definition{Mode: Mode(r.Mode), Start: r.Start, FromZero: r.Start == 0, Stride: Every(r.Stride, r.Offset), Max: r.Max, MinStep: r.MinStep, MaxStep: r.MaxStep, Period: Period{text: r.Period}}
}

func infoOf(name string, r cell.Sequence) Info {
	info := Info{Name: name, Definition: definitionOf(r), Last: r.LastNumber(), Granted: int64(r.Granted()) - 1, Writes: r.Writes, WentBack: r.Lost}
	if r.Period == "" && r.Left() > 0 {
		info.Next, info.Left = r.Number(r.Next), int64(r.Left())
	}
	return info
}

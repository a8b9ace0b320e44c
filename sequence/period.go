package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
)

// Period says when numbers begin anew. A [Definition] with one has no numbers of its own: each
// period has a sequence, whose name is that of the definition, a dot and the name of the period.
// Any other text than the ones below is a period whose names come from [WithPeriodNames]; it has the
// characters of a sequence's name, but no dot.
type Period string

const (
	Yearly  Period = "yearly"  // "2027"
	Monthly Period = "monthly" // "2027-01"
	Daily   Period = "daily"   // "2027-01-31"
)

// layout is the name of a period as package time formats it, or empty if a function names it.
func (p Period) layout() string {
	return map[Period]string{Yearly: "2006", Monthly: "2006-01", Daily: "2006-01-02"}[p]
}

// example is the name of one such period, or empty.
func (p Period) example() string {
	return time.Date(2027, time.January, 31, 0, 0, 0, 0, time.UTC).Format(p.layout())
}

// Name returns the name of the period that an instant lies in. The instant's own location decides:
// at.UTC() and at.Local() may lie in two years. The error is an [*stores.OptionError] if the year
// does not have four digits, or only a function knows the names.
func (p Period) Name(at time.Time) (string, error) {
	name := at.Format(p.layout())
	return name, p.check(name, false)
}

// check returns an error unless name can name a period. named says that a function made it.
func (p Period) check(name string, named bool) error {
	layout := p.layout()
	switch _, err := time.Parse(layout, name); {
	case layout == "" && !named:
		return &stores.OptionError{Option: "period", Err: fmt.Errorf("%q: only the program that counts %s knows the names of its periods", name, p)}
	case layout == "" && (name == "" || len(name) > maxName || strings.Contains(name, ".")):
		return &stores.OptionError{Option: "WithPeriodNames", Err: fmt.Errorf("name %.40q: want 1 to %d characters and no dot", name, maxName)}
	case layout != "" && err != nil:
		return &stores.OptionError{Option: "period", Err: fmt.Errorf("%q is not %s: want a name such as %s", name, p, p.example())}
	}
	return nil
}

// maxPeriod is the length in bytes of the longest text of a Period, and maxName that of the longest name of
// a period: its cell has the name of another one.
const (
	maxPeriod = 16
	maxName   = 32
)

// periodName is the name of the sequence of a period.
func periodName(name, period string) string { return name + "." + period }

// errNoPeriod says that a name is not that of a period.
var errNoPeriod = errors.New("no period")

// demand makes the cell of the period, if its definition has such a period, and returns it.
func (a *admin) demand(ctx context.Context, named bool) (count.Cell, error) {
	d, err := a.announce(ctx, func(r cell.Sequence) error {
		err := Period(r.Period).check(a.period(), named)
		if err != nil {
			err = drive.Wrap(fmt.Sprintf("sequence %q: %v: %v", a.name, ErrNotFound, err), ErrNotFound, ErrByPeriod, err)
		}
		return err
	})
	if err == errNoPeriod {
		err = a.notFound()
	}
	if err != nil {
		return count.Cell{}, err
	}
	return a.makePeriod(ctx, d)
}

// announce names the period in its definition, unless its cell was made before, and returns the definition. The
// error is errNoPeriod if there is none, or that of check.
//
// The cells of the periods form a list: the definition names the newest and the one before, and each
// period the one before it. A period is named in the definition before its cell is made, and that
// cell before the next one is named. So [Export], which ends the definition first, finds every period,
// whatever a listing of the store says.
func (a *admin) announce(ctx context.Context, check func(definition cell.Sequence) error) (cell.Sequence, error) {
	definition := a.of(a.base())
	if CheckName(definition.name) != nil {
		return cell.Sequence{}, errNoPeriod
	}
	_, is, err := definition.rewrite(ctx, func(found count.Cell) (cell.Sequence, error) {
		r := found.Record
		switch err := check(r); {
		case r.Deleted || r.Period == "":
			return r, errNoPeriod
		case err != nil:
			return r, err
		case r.Newest == a.period():
			return r, errDone
		}
		made, err := readCell(ctx, &a.calls, a.name)
		if err == nil && made.Version == 0 && r.Newest != "" {
			_, err = a.of(periodName(definition.name, r.Newest)).makePeriod(ctx, r)
		}
		switch {
		case err != nil:
			return r, err
		case made.Version != 0:
			return r, errDone
		case r.Move.Exported():
			return r, movedError(definition.name, r)
		}
		r.Newest, r.Older = a.period(), r.Newest
		return r, nil
	})
	return is.Record, err
}

// makePeriod makes the cell of the period that a definition names last, or returns the one that there is.
func (a *admin) makePeriod(ctx context.Context, definition cell.Sequence) (count.Cell, error) {
	d := definitionOf(definition)
	d.Period = ""
	return a.create(ctx, d, creation{period: true, older: definition.Older})
}

// base is the name up to the last dot, which is that of the definition if the sequence is a period.
func (a *admin) base() string { return a.name[:max(strings.LastIndexByte(a.name, '.'), 0)] }

// definition reads the cell of the sequence by period that this one is a period of, or returns none.
func (a *admin) definition(ctx context.Context) (count.Cell, error) {
	if CheckName(a.base()) != nil {
		return count.Cell{}, nil
	}
	return readCell(ctx, &a.calls, a.base())
}

// of returns the admin of another sequence of the store.
func (a *admin) of(name string) *admin {
	return &admin{calls: callsOf(a.calls.Store, name, a.calls.Timeout), name: name}
}

// period is the name after the last dot.
func (a *admin) period() string { return a.name[strings.LastIndexByte(a.name, '.')+1:] }

// isPeriod reports whether the sequence is a period of the definition in a record.
func (a *admin) isPeriod(r cell.Sequence) bool {
	return r.Period != "" && !r.Deleted && Period(r.Period).check(a.period(), true) == nil
}

// asDefined returns an error unless d is the definition of the sequence as a period of the one in r. One that was
// deleted may need a higher maximum, which must be named.
func (a *admin) asDefined(r cell.Sequence, d Definition, deleted bool) error {
	theirs := definitionOf(r)
	ours := d
	if ours.Period = theirs.Period; deleted && d.HasMax() && d.Max > theirs.Max {
		ours.Max = theirs.Max
	}
	switch {
	case !a.isPeriod(r):
		return errNoPeriod
	case !same(ours, theirs, r.Created):
		return &DefinitionError{Name: a.base(), Ours: d, Theirs: theirs}
	}
	return nil
}

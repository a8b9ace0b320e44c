package sequence

import (
	"context"
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
// The zero Period is none. Those below are named by the calendar; make others with [NewPeriod].
type Period struct {
	text  string
	names *func(time.Time) string // of a process that counts by it; nil in a store
}

var (
	Yearly  = Period{text: "yearly"}  // "2027"
	Monthly = Period{text: "monthly"} // "2027-01"
	Daily   = Period{text: "daily"}   // "2027-01-31"
)

// NewPeriod returns a period with names of your own. kind is its text in the store, such as "fiscal": 1 to 16 characters
// of a sequence's name, and none of the periods above. names returns the name of the period that an instant
// lies in: "fy27" for a fiscal year, "2027-w05" for a week. It returns the same name for the same
// instant in all processes, may be called by several goroutines at once, and its names have no dot and
// at most 32 characters. What uses the period refuses another kind or a nil names.
func NewPeriod(kind string, names func(at time.Time) string) Period {
	if names == nil {
		return Period{text: kind}
	}
	return Period{text: kind, names: &names}
}

// String returns the text of the period in a store, such as "yearly", or "" for none.
func (p Period) String() string { return p.text }

// MarshalText returns what String does.
func (p Period) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// UnmarshalText reads what String returns. It does not know the function of [NewPeriod], so it yields a period
// of that kind that opens nothing.
func (p *Period) UnmarshalText(text []byte) error {
	*p = Period{text: string(text)}
	return p.check()
}

// check returns an error unless p can stand in a store.
func (p Period) check() error {
	if p.text == "" || ValidateName(p.text) != nil || len(p.text) > maxPeriod {
		return fmt.Errorf("period %.20q: want %s, %s, %s, or at most %d characters of a name", p.text, Yearly, Monthly, Daily, maxPeriod)
	}
	return nil
}

// layout is the name of a period as package time formats it, or empty if a function names it.
func (p Period) layout() string {
	return map[string]string{"yearly": "2006", "monthly": "2006-01", "daily": "2006-01-02"}[p.text]
}

// example is the name of one such period, or empty.
func (p Period) example() string {
	return time.Date(2027, time.January, 31, 0, 0, 0, 0, time.UTC).Format(p.layout())
}

// Name returns the name of the period that an instant lies in. The instant's own location decides:
// at.UTC() and at.Local() may lie in two years. The error is an [*stores.OptionError] if the year
// does not have four digits, or the period was read from a store and only a function knows its names.
func (p Period) Name(at time.Time) (string, error) {
	name := at.Format(p.layout())
	if p.names != nil {
		name = (*p.names)(at)
	}
	return name, p.checkName(name, p.names != nil)
}

// checkName returns an error unless name can name a period. named says that a function made it.
func (p Period) checkName(name string, named bool) error {
	layout := p.layout()
	switch _, err := time.Parse(layout, name); {
	case layout == "" && !named:
		return &stores.OptionError{Option: "period", Err: fmt.Errorf("%q: only the program that counts %s knows the names of its periods", name, p)}
	case layout == "" && (name == "" || len(name) > maxName || strings.Contains(name, ".")):
		return &stores.OptionError{Option: "NewPeriod", Err: fmt.Errorf("name %.40q: want 1 to %d characters and no dot", name, maxName)}
	case layout != "" && err != nil:
		return &stores.OptionError{Option: "period", Err: fmt.Errorf("%q is not %s: want a name such as %s", name, p, p.example())}
	}
	return nil
}

// maxPeriod is the length in bytes of the longest text of a Period, and maxName that of the longest name of
// a period.
const (
	maxPeriod = 16
	maxName   = 32
)

// periodName is the name of the sequence of a period.
func periodName(name, period string) string { return name + "." + period }

// demand makes the cell of the period, if its definition has such a period, and returns it. One that was
// deleted stays so. A process that has read the definition just before that was deleted makes it as well.
func (a *remote) demand(ctx context.Context, named bool) (count.Cell, error) {
	definition, err := a.definition(ctx)
	r := definition.Record
	switch {
	case err != nil:
		return count.Cell{}, err
	case r.Period == "" || r.Deleted:
		return count.Cell{}, a.notFound()
	}
	if err := (Period{text: r.Period}).checkName(a.period(), named); err != nil {
		return count.Cell{}, drive.Wrap(fmt.Sprintf("sequence %q: %v: %v", a.name, ErrNotFound, err), ErrNotFound, ErrByPeriod, err)
	}
	d := definitionOf(r)
	d.Period = Period{}
	return a.create(ctx, d, creation{onDemand: true, period: true})
}

// definition reads the cell of the sequence by period that this one is a period of, or returns none.
func (a *remote) definition(ctx context.Context) (count.Cell, error) {
	if ValidateName(a.base()) != nil {
		return count.Cell{}, nil
	}
	return (&remote{a.store, a.base()}).read(ctx)
}

// base is the name up to the last dot, which is that of the definition if the sequence is a period, and period the
// name after it.
func (a *remote) base() string   { return a.name[:max(strings.LastIndexByte(a.name, '.'), 0)] }
func (a *remote) period() string { return a.name[strings.LastIndexByte(a.name, '.')+1:] }

// isPeriod reports whether the sequence is a period of the definition in a record.
func (a *remote) isPeriod(r cell.Sequence) bool {
	return r.Period != "" && !r.Deleted && (Period{text: r.Period}).checkName(a.period(), true) == nil
}

// asDefined returns an error unless d is the definition of the sequence as a period, if it is one. One that was
// deleted may need a higher maximum, which must be named.
func (a *remote) asDefined(ctx context.Context, d Definition, deleted bool) error {
	definition, err := a.definition(ctx)
	if err != nil || !a.isPeriod(definition.Record) {
		return err
	}
	theirs := definitionOf(definition.Record)
	ours := d
	if ours.Period = theirs.Period; deleted && d.hasMax() && d.Max > theirs.Max {
		ours.Max = theirs.Max
	}
	if !same(ours, theirs, definition.Record.Created) {
		return &DefinitionError{Name: a.base(), Ours: d, Theirs: theirs}
	}
	return nil
}

package results

import (
	"fmt"
	"math"
	"regexp"
	"slices"
)

// Check returns what is wrong with the report, if anything is: an ID that is used
// twice or cannot name a file, a row that does not fit its table, a chart without a
// table, a sample that is no number.
func (r *Report) Check() error {
	if r.Schema != Schema {
		return &SchemaError{r.Schema}
	}
	ids := names{}
	for i := range r.Sections {
		s := &r.Sections[i]
		if err := ids.add("section", s.ID); err != nil {
			return err
		}
		if err := s.check(ids); err != nil {
			return fmt.Errorf("section %s: %w", s.ID, err)
		}
	}
	return nil
}

// Check returns what is wrong with the section, as [Report.Check] does.
func (s *Section) Check() error {
	ids := names{}
	if err := ids.add("section", s.ID); err != nil {
		return err
	}
	return s.check(ids)
}

func (s *Section) check(ids names) error {
	for _, t := range s.Targets {
		if err := ids.add("target", t.ID); err != nil {
			return err
		}
		if err := t.Got.check(); err != nil {
			return fmt.Errorf("target %s: %w", t.ID, err)
		}
		if !finite(t.Want) {
			return fmt.Errorf("target %s wants %v", t.ID, t.Want)
		}
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		if err := ids.add("table", t.ID); err != nil {
			return err
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("table %s: %w", t.ID, err)
		}
	}
	for _, c := range s.Charts {
		if err := ids.add("chart", c.ID); err != nil {
			return err
		}
		if err := s.checkChart(c); err != nil {
			return fmt.Errorf("chart %s: %w", c.ID, err)
		}
	}
	return nil
}

func (s *Section) checkChart(c Chart) error {
	if c.Kind != Bars && c.Kind != Lines {
		return fmt.Errorf("%q is no kind of chart", c.Kind)
	}
	table := s.Table(c.Table)
	if table == nil {
		return fmt.Errorf("its section has no table %q", c.Table)
	}
	for _, id := range c.Columns {
		if table.column(id) < 0 {
			return fmt.Errorf("table %s has no column %q", c.Table, id)
		}
	}
	return nil
}

func (t *Table) check() error {
	columns, rows := names{}, map[string]bool{}
	for _, c := range t.Columns {
		if columns["column "+c.ID] {
			return fmt.Errorf("column %q is there twice", c.ID)
		}
		columns["column "+c.ID] = true
		if !finite(c.X) {
			return fmt.Errorf("column %s is at %v", c.ID, c.X)
		}
		if !slices.Contains([]Better{Less, More, Neither}, c.Better) {
			return fmt.Errorf("column %s: better is %q", c.ID, c.Better)
		}
	}
	for _, r := range t.Rows {
		if rows[r.Name] {
			return fmt.Errorf("row %q is there twice", r.Name)
		}
		rows[r.Name] = true
		if len(r.Cells) != len(t.Columns) {
			return fmt.Errorf("row %q has %d cells for %d columns", r.Name, len(r.Cells), len(t.Columns))
		}
		for i, c := range r.Cells {
			if err := c.check(); err != nil {
				return fmt.Errorf("row %q, column %s: %w", r.Name, t.Columns[i].ID, err)
			}
		}
	}
	if t.Base != "" && !rows[t.Base] {
		return fmt.Errorf("it has no row %q to compare with", t.Base)
	}
	return nil
}

func (c Cell) check() error {
	for i, v := range c.Samples {
		if !finite(v) {
			return fmt.Errorf("sample %d is %v", i+1, v)
		}
	}
	if !slices.Contains([]Mark{Good, Bad, NoMark}, c.Mark) {
		return fmt.Errorf("%q is no mark", c.Mark)
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// names are those given so far, by kind.
type names map[string]bool

// plain is an ID that can name a file, a link and an element, on every system.
var plain = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

func (n names) add(kind, id string) error {
	switch {
	case !plain.MatchString(id):
		return fmt.Errorf("%s ID %q: want lower-case letters, digits, dots and dashes", kind, id)
	case n[kind+" "+id]:
		return fmt.Errorf("%s %s is there twice", kind, id)
	}
	n[kind+" "+id] = true
	return nil
}

// Repair leaves out samples that are no numbers, such as a rate of what took no time,
// and says in the section's notes how many there were.
func (s *Section) Repair() {
	dropped := 0
	repair := func(c *Cell) {
		if !slices.ContainsFunc(c.Samples, func(v float64) bool { return !finite(v) }) {
			return
		}
		before := len(c.Samples)
		// In a copy: cells may show parts of one slice.
		c.Samples = slices.DeleteFunc(slices.Clone(c.Samples), func(v float64) bool { return !finite(v) })
		dropped += before - len(c.Samples)
	}
	for i := range s.Targets {
		repair(&s.Targets[i].Got)
	}
	for i := range s.Tables {
		for _, row := range s.Tables[i].Rows {
			for k := range row.Cells {
				repair(&row.Cells[k])
			}
		}
	}
	if dropped > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("Samples that were no numbers and are left out: %d.", dropped))
	}
}

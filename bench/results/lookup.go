package results

// Section returns the section with the ID, or nil.
func (r *Report) Section(id string) *Section {
	for i := range r.Sections {
		if r.Sections[i].ID == id {
			return &r.Sections[i]
		}
	}
	return nil
}

// Table returns the table with the ID, or nil.
func (s *Section) Table(id string) *Table {
	for i := range s.Tables {
		if s.Tables[i].ID == id {
			return &s.Tables[i]
		}
	}
	return nil
}

// ChartsOf returns the charts that draw the table, in order.
func (s *Section) ChartsOf(table string) []Chart {
	var charts []Chart
	for _, c := range s.Charts {
		if c.Table == table {
			charts = append(charts, c)
		}
	}
	return charts
}

// Row returns the row with the name, or nil.
func (t *Table) Row(name string) *Row {
	for i := range t.Rows {
		if t.Rows[i].Name == name {
			return &t.Rows[i]
		}
	}
	return nil
}

// column returns the index of the column with the ID, or -1.
func (t *Table) column(id string) int {
	for i, c := range t.Columns {
		if c.ID == id {
			return i
		}
	}
	return -1
}

// Cell returns what is at the row with the name and the column with the ID. It is
// empty if there is none.
func (t *Table) Cell(row, column string) Cell {
	r, i := t.Row(row), t.column(column)
	if r == nil || i < 0 || i >= len(r.Cells) {
		return Cell{}
	}
	return r.Cells[i]
}

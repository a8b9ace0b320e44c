package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// Dialect has the differences between the servers. [PostgreSQL] and [MySQL] return one.
type Dialect struct {
	name  string                   // in errors
	quote func(name string) string // as an identifier, which may be a reserved word
	table string                   // quoted

	// The statements. TABLE_NAME stands for the table, and the arguments are
	// in the same order in all dialects.
	schema string
	list   string // namespace, from, to, limit
	read   string // namespace, cell; returns the session's state, version, value, the latter two NULL for no cell
	insert string // namespace, cell, version, value
	update string // version, value, namespace, cell, old version
	state  string // the session's state alone
	sync   string // namespace, cell, version; syncs the cell, if it still has that version

	guarded bool // insert and update do nothing in a session that commits nothing

	says func(error) error // what the server's error stands for, of those in errors.go, or nil

	// readOnly returns who has made transactions read-only, or no row if the server is a standby. Without it, the server's
	// error tells.
	readOnly string

	// durability asks the server for its settings, and whether a table that was made by hand keeps the promises of a Store, in
	// two or three round trips.
	durability func(ctx context.Context, db *sql.DB, d Dialect) (stores.Durability, error)
}

func (d Dialect) withTable(table string) Dialect {
	parts := strings.Split(table, ".")
	for i, part := range parts {
		parts[i] = d.quote(part)
	}
	d.table = strings.Join(parts, ".")
	for _, s := range []*string{&d.schema, &d.list, &d.read, &d.insert, &d.update, &d.sync} {
		*s = strings.ReplaceAll(*s, "TABLE_NAME", d.table)
	}
	return d
}

// unfit returns a refusal of a table that was made by hand and breaks the promises of a
// Store, with the statement that changes it, or nil. query returns the name and the type of
// each column that does not fit, INDEX and the name of each unique index that refuses cells, and another row
// if no key of namespace and cell is unique.
func (d Dialect) unfit(ctx context.Context, db *sql.DB, query string, args ...any) error {
	found, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	var problems []string
	for found.Next() {
		var name, is string
		if err := found.Scan(&name, &is); err != nil {
			return err
		}
		problem, change := "no key of namespace and cell is unique", "ADD UNIQUE (namespace, cell)"
		if name == "INDEX" {
			problem, change = fmt.Sprintf("unique index %s takes two cells for one", is), "DROP INDEX "+d.quote(is)
		}
		for line := range strings.Lines(d.schema) {
			if words := strings.Fields(line); words[0] == name {
				problem, change = fmt.Sprintf("column %s is %s", name, is), "MODIFY "+strings.TrimSuffix(strings.Join(words, " "), ",")
			}
		}
		problems = append(problems, fmt.Sprintf("%s: ALTER TABLE %s %s", problem, d.table, change))
	}
	if err := found.Err(); err != nil || problems == nil {
		return err
	}
	return fmt.Errorf("%w: %s", errUnfit, strings.Join(problems, "; "))
}

package databases

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/report"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/servers"
)

// indexSection measures what kinds of primary keys cost a database: how fast rows are inserted, and how large the index
// becomes.
func indexSection() measure.Section {
	return measure.Section{ID: "index", Title: "Index friendliness", Full: 70 * time.Second, Quick: 3 * time.Second,
		About: "Rows of a primary key and 100 bytes are inserted by INSERTs of 1,000 rows over one connection, each committed by itself, " +
			"into a table for each kind of key. The tables take turns, in random order, until each has a million rows (20,000 in a quick run) or the time is up, and share the server's cache. " +
			"The rows are made before the inserts are timed. The servers have their default settings, with synced commits and caches of 128 MB. PostgreSQL keeps rows in the order in which they come, and the index beside them; MariaDB keeps rows inside the index of their primary key. UUIDs have the type uuid, or BINARY(16).",
		Measure: measureIndexes}
}

const (
	batchRows    = 1000 // of one INSERT
	payloadBytes = 100  // of a row without its key
)

func measureIndexes(ctx context.Context, run *measure.Run) report.Section {
	var wanted []servers.Wanted
	for _, e := range engines {
		wanted = append(wanted, servers.Wanted{Kind: e.kind})
	}
	return run.On(ctx, wanted, func(started []*servers.Server, s *report.Section) {
		for i, e := range engines {
			if started[i].Err != nil {
				continue
			}
			// One engine runs after the other, because they write in the background. The rest of the
			// time is shared evenly.
			part := *run
			part.Until = time.Now().Add(time.Until(run.Until) / time.Duration(len(engines)-i))
			tables, err := e.measure(ctx, &part, started[i])
			if err != nil {
				s.Note("%s did not get to the end: %s.", e.kind, servers.Reason(err))
			}
			if len(tables) > 0 && len(tables[0].Figures["rate"]) > 0 {
				s.Tables = append(s.Tables, e.summary(tables))
			}
		}
	})
}

// measure fills a table for each kind of key, a chunk in each turn.
func (e engine) measure(ctx context.Context, run *measure.Run, server *servers.Server) (tables []*table, err error) {
	db, err := server.SQL(nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	list, err := keys()
	if err != nil {
		return nil, err
	}
	var loads []*measure.Load
	for i, k := range list {
		t := &table{engine: e, key: k, db: db, name: fmt.Sprint("keys", i), batches: measure.Pick(run, 2, 20)}
		if err := t.create(ctx); err != nil {
			return nil, fmt.Errorf("make table %s: %w", t.name, err)
		}
		t.Load = &measure.Load{Row: k.name, Group: k.group, Turn: t.chunk}
		tables, loads = append(tables, t), append(loads, t.Load)
	}
	// The first chunk of each is to warm up.
	run.Measure(ctx, measure.Pick(run, 1, 5), measure.Pick(run, 20_000, 1_000_000)/tables[0].chunkRows()-1, loads...)
	for _, t := range tables {
		err = errors.Join(err, t.Err)
		if t.Err == nil && ctx.Err() == nil {
			var whole float64
			_, failed := db.ExecContext(ctx, e.analyze+t.name)
			if err = errors.Join(err, failed, db.QueryRowContext(ctx, e.size, t.name).Scan(&whole)); whole > 0 {
				t.Figures["whole"] = []float64{whole / float64(t.rows)}
			}
		}
	}
	return tables, err
}

// engine has the differences between the servers.
type engine struct {
	kind        servers.Kind
	column      int    // of key.columns
	placeholder string // of the parameter with the number n
	analyze     string // begins the statement that makes the sizes exact
	size        string // asks for the bytes of a table with its index
}

var engines = []engine{
	{servers.PostgreSQL, 0, "$n", "ANALYZE ", "SELECT pg_total_relation_size($1::text)"},
	{servers.MariaDB, 1, "?", "ANALYZE TABLE ",
		"SELECT stat_value * @@innodb_page_size FROM mysql.innodb_index_stats " +
			"WHERE database_name = DATABASE() AND table_name = ? AND index_name = 'PRIMARY' AND stat_name = 'size'"},
}

// key is a kind of primary key.
type key struct {
	name    string
	group   report.Group
	columns [2]string           // how PostgreSQL and MariaDB declare it
	next    func() (any, error) // nil: the server makes it
}

const oursName = "tickflake"

// keys returns all kinds, with a generator of their own each.
func keys() ([]key, error) {
	g, err := generator.New(generator.WithNode(1))
	if err != nil {
		return nil, err
	}
	// The drivers send 16 bytes, and not a text.
	bytesOf := func(next func() (uuid.UUID, error)) func() (any, error) {
		return func() (any, error) {
			u, err := next()
			return u[:], err
		}
	}
	return []key{
		{oursName, report.Ours, [2]string{"bigint", "bigint"}, func() (any, error) {
			id, err := g.Next()
			return int64(id), err
		}},
		{"auto-increment", report.Peers, [2]string{"bigint GENERATED ALWAYS AS IDENTITY", "bigint AUTO_INCREMENT"}, nil},
		{"UUIDv7", report.Peers, [2]string{"uuid", "binary(16)"}, bytesOf(uuid.NewV7)},
		{"UUIDv4", report.Peers, [2]string{"uuid", "binary(16)"}, bytesOf(uuid.NewRandom)},
	}, nil
}

// table is a table of one engine, with one kind of key.
type table struct {
	engine
	key
	*measure.Load
	name    string
	db      *sql.DB // shared with the other tables
	insert  *sql.Stmt
	batches int // of a chunk
	rows    int
}

func (t *table) chunkRows() int { return t.batches * batchRows }

func (t *table) create(ctx context.Context) error {
	if _, err := t.db.ExecContext(ctx, fmt.Sprintf("CREATE TABLE %s (id %s PRIMARY KEY, payload varchar(%d) NOT NULL)", t.name, t.columns[t.column], payloadBytes)); err != nil {
		return err
	}
	columns := []string{"id", "payload"}
	if t.next == nil {
		columns = columns[1:]
	}
	rows := make([]string, batchRows)
	for i := range rows {
		var params []string
		for j := range columns {
			params = append(params, strings.ReplaceAll(t.placeholder, "n", strconv.Itoa(i*len(columns)+j+1)))
		}
		rows[i] = "(" + strings.Join(params, ", ") + ")"
	}
	var err error
	t.insert, err = t.db.PrepareContext(ctx, "INSERT INTO "+t.name+" ("+strings.Join(columns, ", ")+") VALUES "+strings.Join(rows, ", "))
	return err
}

// chunk inserts the batches of a turn. The rows are made before the time is taken.
func (t *table) chunk(ctx context.Context) (measure.Figures, error) {
	work := make([][]any, t.batches)
	for i := range work {
		for range batchRows {
			if t.next != nil {
				id, err := t.next()
				if err != nil {
					return nil, err
				}
				work[i] = append(work[i], id)
			}
			work[i] = append(work[i], payload())
		}
	}
	began := time.Now()
	for _, params := range work {
		if _, err := t.insert.ExecContext(ctx, params...); err != nil {
			return nil, err
		}
	}
	took := time.Since(began)
	t.rows += t.chunkRows()
	return measure.Figures{"rate": float64(t.chunkRows()) / took.Seconds()}, nil
}

// payload returns random letters and digits, which do not compress.
func payload() string { return (rand.Text() + rand.Text() + rand.Text() + rand.Text())[:payloadBytes] }

// summary is a table with a row per kind of key.
func (e engine) summary(tables []*table) report.Table {
	t := report.Table{ID: "index-" + strings.ToLower(string(e.kind)), RowName: "primary key", Base: oursName,
		Title: fmt.Sprintf("%s, %s rows of each", e.kind, report.Figure(float64(tables[0].rows))),
		Columns: []report.Column{
			{ID: "rate", Title: "inserted", Unit: "rows/s", Better: report.More},
			{ID: "whole", Title: "table and index", Unit: "bytes/row", Better: report.Less},
		},
	}
	var loads []*measure.Load
	for _, one := range tables {
		loads = append(loads, one.Load)
	}
	t = measure.Rows(t, loads, func(l *measure.Load, column string) report.Cell {
		cell := l.Of(column)
		if column == "whole" && len(cell.Samples) > 0 {
			return report.One(cell.Samples[0]) // it is exact
		}
		return cell
	})
	var others []string
	for _, row := range t.Rows[1:] {
		with := "not measurably different"
		if d := row.Cells[0].Against(t.Rows[0].Cells[0]); d.Significant() {
			with = d.Value()
		}
		others = append(others, row.Name+" "+with)
	}
	t.Say("%s inserts %s rows per second with tickflake IDs (%s).", e.kind, t.Rows[0].Cells[0], strings.Join(others, ", "))
	return t
}

package indexes

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// batchRows is how many rows one INSERT has.
const batchRows = 1000

// payloadBytes is the length of a row without its key.
const payloadBytes = 100

// subject is a table of one engine, with one kind of key.
type subject struct {
	engine
	key
	db     *sql.DB // shared with the other tables
	insert *sql.Stmt
	rows   int
	rates  []float64 // rows per second, one per chunk
	logged []float64 // bytes of log per row, one per chunk
	splits float64   // by the counter
	size   size
}

func (s *subject) open(ctx context.Context) error {
	create := fmt.Sprintf("CREATE TABLE %s (id %s PRIMARY KEY, payload varchar(%d) NOT NULL)", s.table, s.column(s.key), payloadBytes)
	if _, err := s.db.ExecContext(ctx, create); err != nil {
		return err
	}
	columns := []string{"id", "payload"}
	if s.next == nil {
		columns = columns[1:]
	}
	rows := make([]string, batchRows)
	for i := range rows {
		params := make([]string, len(columns))
		for j := range params {
			params[j] = s.placeholder(i*len(columns) + j + 1)
		}
		rows[i] = "(" + strings.Join(params, ", ") + ")"
	}
	var err error
	s.insert, err = s.db.PrepareContext(ctx, "INSERT INTO "+s.table+" ("+strings.Join(columns, ", ")+") VALUES "+strings.Join(rows, ", "))
	return err
}

// chunk inserts so many batches. The rows are made before the time is taken.
func (s *subject) chunk(ctx context.Context, r *rand.Rand, batches int) error {
	work := make([][]any, batches)
	for i := range work {
		var err error
		if work[i], err = s.batch(r); err != nil {
			return err
		}
	}
	before, err := s.counters(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, params := range work {
		done, err := s.insert.ExecContext(ctx, params...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != batchRows {
			return fmt.Errorf("an INSERT of %d rows has inserted %d: %w", batchRows, n, err)
		}
	}
	took := time.Since(began)
	after, err := s.counters(ctx)
	if err != nil {
		return err
	}
	n := batches * batchRows
	s.rows += n
	s.rates = append(s.rates, float64(n)/took.Seconds())
	s.logged = append(s.logged, float64(after.log-before.log)/float64(n))
	s.splits += float64(after.splits - before.splits)
	return nil
}

// batch returns the parameters of an INSERT.
func (s *subject) batch(r *rand.Rand) ([]any, error) {
	params := make([]any, 0, 2*batchRows)
	for range batchRows {
		if s.next != nil {
			id, err := s.next()
			if err != nil {
				return nil, err
			}
			params = append(params, id)
		}
		params = append(params, payload(r))
	}
	return params, nil
}

// payload returns random letters, which do not compress.
func payload(r *rand.Rand) string {
	text := make([]byte, payloadBytes)
	for i := 0; i < len(text); i += 8 {
		for j, bits := i, r.Uint64(); j < min(i+8, len(text)); j, bits = j+1, bits>>8 {
			text[j] = 'a' + byte(bits%26)
		}
	}
	return string(text)
}

// counters are those of the server.
type counters struct{ log, splits int64 }

func (s *subject) counters(ctx context.Context) (c counters, err error) {
	if err := s.db.QueryRowContext(ctx, s.logQuery).Scan(&c.log); err != nil || s.splitQuery == "" {
		return c, err
	}
	return c, s.db.QueryRowContext(ctx, s.splitQuery).Scan(&c.splits)
}

// weigh measures the size of the table.
func (s *subject) weigh(ctx context.Context) (err error) {
	s.size, err = s.engine.size(ctx, s.db, s.table)
	if s.splitQuery != "" {
		s.size.splits = s.splits
	}
	return err
}

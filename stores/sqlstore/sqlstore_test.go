package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// fakeConn is the rest of a driver's connection.
type fakeConn struct{}

func (fakeConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (fakeConn) Close() error                        { return nil }
func (fakeConn) Begin() (driver.Tx, error)           { return nil, driver.ErrSkip }

// oneRow is the answer to a Read: the session's state, the version and the value.
type oneRow struct{ given bool }

func (*oneRow) Columns() []string { return make([]string, 3) }
func (*oneRow) Close() error      { return nil }
func (r *oneRow) Next(dest []driver.Value) error {
	if r.given {
		return io.EOF
	}
	r.given = copy(dest, []driver.Value{"", int64(5), "v"}) > 0
	return nil
}

// slowServer answers when answer returns. Like go-sql-driver/mysql, its driver closes a
// connection whose context has ended.
type slowServer struct {
	fakeConn
	answer func(ctx context.Context) error
}

func (s slowServer) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s slowServer) Driver() driver.Driver                        { return nil }

func (s slowServer) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	return new(oneRow), s.answer(ctx)
}

// slowly returns a Store on a slowServer that knows one cell, and its handle.
func slowly(t *testing.T, answer func(ctx context.Context) error) (*sqlstore.Store, *sql.DB) {
	db := sql.OpenDB(slowServer{answer: answer})
	t.Cleanup(func() { _ = db.Close() })
	// Only an error has a number.
	s, err := sqlstore.New(db, sqlstore.MySQL(func(err error) uint16 { return uint16(len(err.Error())) }), "a")
	require.NoError(t, err)
	return s, db
}

// However often a caller tries, the server has at most MaxRunning statements, and the next
// is sent when one has its answer.
func TestRunningStatementsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waiting []chan struct{} // one for each statement at the server
		s, _ := slowly(t, func(ctx context.Context) error {
			answer := make(chan struct{})
			waiting = append(waiting, answer) // the bubble is idle between the Reads
			select {
			case <-answer:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		for i := range 3 * sqlstore.MaxRunning {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := s.Read(ctx, "k")
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			synctest.Wait()
			assert.Len(t, waiting, min(i+1, sqlstore.MaxRunning))
			if i >= sqlstore.MaxRunning {
				assert.ErrorContains(t, err, "4 statements have no answer yet")
			}
		}
		read := make(chan error)
		go func() {
			_, err := s.Read(t.Context(), "k")
			read <- err
		}()
		synctest.Wait()
		require.Len(t, waiting, sqlstore.MaxRunning)
		close(waiting[0])
		synctest.Wait()
		require.Len(t, waiting, sqlstore.MaxRunning+1, "a turn was free")
		close(waiting[sqlstore.MaxRunning])
		require.NoError(t, <-read)
		time.Sleep(dial.MaxSilence) // of the bubble: the others are given up
	})
}

// Nothing is sent for a caller that gave up while it waited for a turn, or for a connection
// of the handle, and its error says which.
func TestNothingIsSentForCallerThatGaveUp(t *testing.T) {
	for want, taken := range map[string]bool{"4 statements have no answer yet": false, "all 1 connections of the database handle are in use": true} {
		synctest.Test(t, func(t *testing.T) {
			var sent atomic.Int64
			answers := make(chan struct{})
			s, db := slowly(t, func(context.Context) error { sent.Add(1); <-answers; return nil })
			free, expected := func() error { return nil }, sqlstore.MaxRunning
			if taken {
				db.SetMaxOpenConns(1)
				conn, err := db.Conn(t.Context())
				require.NoError(t, err)
				free, expected = conn.Close, 0
			}
			var err error
			for range sqlstore.MaxRunning + 5 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err = s.Read(ctx, "k")
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			assert.ErrorContains(t, err, want)
			close(answers)
			require.NoError(t, free())
			synctest.Wait()
			assert.EqualValues(t, expected, sent.Load())
		})
	}
}

// cancelled answers a statement with success when it is told to end it, as PostgreSQL does
// with a commit that waits for its standby.
type cancelled struct{ fakeConn }

func (c cancelled) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c cancelled) Driver() driver.Driver                        { return nil }

func (c cancelled) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	<-ctx.Done()
	return driver.RowsAffected(1), nil
}

// A write that was cancelled is not acknowledged, whatever the server says.
func TestCancelledWriteIsNotAcknowledged(t *testing.T) {
	s, err := sqlstore.New(sql.OpenDB(cancelled{}), sqlstore.PostgreSQL(), "a")
	require.NoError(t, err)
	for range 2000 { // the caller and the answer are in a race
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, err := s.Swap(ctx, "k", 5, []byte("v"))
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestNewOfBadThings(t *testing.T) {
	db := sql.OpenDB(cancelled{})
	_, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a b")
	assert.ErrorContains(t, err, "namespace \"a b\"")
	_, err = sqlstore.New(nil, sqlstore.PostgreSQL(), "a")
	assert.Error(t, err)
	_, err = sqlstore.New(db, sqlstore.Dialect{}, "a")
	assert.Error(t, err)
	_, err = sqlstore.New(db, sqlstore.PostgreSQL(), "a", nil)
	assert.EqualError(t, err, "sqlstore.New: option 1 of 1 is nil")
	for _, name := range []string{"", ".", "a.", ".a", "a.b.c", "1a", "a.1", "a-b", "a b", "a;b", "ä", `"a"`, strings.Repeat("a", 64), strings.Repeat("a", 5000)} {
		_, err = sqlstore.New(db, sqlstore.PostgreSQL(), "a", sqlstore.WithTable(name))
		assert.ErrorContains(t, err, "want up to 63 ASCII letters", "%q", name)
		assert.Less(t, len(err.Error()), 400)
	}
	for name, quoted := range map[string]string{"_1": `"_1"`, "A.b_2": `"a"."b_2"`, strings.Repeat("a", 63): `"` + strings.Repeat("a", 63) + `"`} {
		s, err := sqlstore.New(db, sqlstore.PostgreSQL(), "a", sqlstore.WithTable(name))
		require.NoError(t, err)
		assert.Contains(t, s.Schema(), "IF NOT EXISTS "+quoted+" (")
	}
}

package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// fakeServer answers each query with the same rows, or an error if there are none.
type fakeServer [][]driver.Value

func (f fakeServer) Connect(context.Context) (driver.Conn, error) { return fakeConn(f), nil }
func (f fakeServer) Driver() driver.Driver                        { return nil }

type fakeConn [][]driver.Value

var errFake = errors.New("nothing was to be sent")

func (fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errFake }
func (fakeConn) Close() error                        { return nil }
func (fakeConn) Begin() (driver.Tx, error)           { return nil, errFake }
func (f fakeConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	if f == nil {
		return nil, errFake
	}
	return &fakeRows{rows: f, columns: len(f[0])}, nil
}

type fakeRows struct {
	rows    [][]driver.Value // that are left
	columns int
}

func (r *fakeRows) Columns() []string { return make([]string, r.columns) }
func (r *fakeRows) Close() error      { return nil }
func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

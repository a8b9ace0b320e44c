package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

// Open returns a Store for the URL of an engine, whose own parameter table is the name of the table. Its handle has up
// to [dial.MaxConns] connections, and keeps one of them for the given time without use. connector must connect with
// dialer. Closing the Store closes both. Open sends nothing. The error is a [*stores.URLError].
func Open(u *engine.URL, dialect Dialect, connector driver.Connector, dialer *dial.Dialer, idle time.Duration) (stores.Store, error) {
	table, ok := u.Options["table"]
	if !ok {
		table = DefaultTable
	}
	db := sql.OpenDB(patient{connector})
	db.SetMaxOpenConns(dial.MaxConns)
	db.SetMaxIdleConns(1) // so that a thousand processes do not keep thousands of connections
	db.SetConnMaxIdleTime(idle)
	s, err := New(db, dialect, u.Namespace, table)
	if err != nil {
		_ = db.Close() // there is no connection yet
		return nil, u.Refuse("the parameter table cannot be used", err)
	}
	if u.URL.Host != "" {
		s.cells.At = dialect.name + " at " + u.URL.Host + " table " + table
	}
	s.cells.Conns, s.cells.Done = dialer, db.Close
	return s, nil
}

// patient is a connector that does not stop when a context ends: a server also counts a connection
// before its login.
type patient struct{ driver.Connector }

func (p patient) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dial.MaxSilence)
	defer cancel()
	return p.Connector.Connect(ctx)
}

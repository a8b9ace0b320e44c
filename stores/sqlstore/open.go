package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/tickflake/tickflake/stores/engine"
)

// OpenDB returns a handle for one Store, with up to [MaxRunning] connections. It keeps one
// of them for the given time without use. connector must connect with dialer. Closing the
// handle closes both.
func OpenDB(connector driver.Connector, dialer *engine.Dialer, idle time.Duration) *sql.DB {
	db := sql.OpenDB(patient{connector, dialer})
	db.SetMaxOpenConns(MaxRunning)
	db.SetMaxIdleConns(1) // so that a thousand processes do not keep thousands of connections
	db.SetConnMaxIdleTime(idle)
	return db
}

// patient is a connector that does not stop when a context ends, like run: a server also
// counts a connection before its login.
type patient struct {
	driver.Connector
	dialer *engine.Dialer
}

func (p patient) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.MaxSilence)
	defer cancel()
	return p.Connector.Connect(ctx)
}

// Close is called by the handle when it is closed.
func (p patient) Close() error { return p.dialer.Close() }

package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

var open = engine.Register("postgres postgresql", []string{"table"}, connect)

// connect opens a URL, as the package's doc describes it. It sends nothing.
func connect(_ context.Context, u *engine.URL) (stores.Store, error) {
	dialer := new(dial.Dialer)
	config, err := configOf(u, dialer)
	if err != nil {
		return nil, u.Refuse("pgx does not take it", withhold(err))
	}
	// Certificates are renewed and passwords change, in files of the same names.
	anew := func(_ context.Context, c *pgx.ConnConfig) error {
		config, err := configOf(u, dialer)
		if err != nil {
			return fmt.Errorf("%w: %w", errFiles, withhold(err))
		}
		*c = *config
		return nil
	}
	connector := stdlib.GetConnector(*config, stdlib.OptionBeforeConnect(anew))
	return sqlstore.Open(u, sqlstore.PostgreSQL(), connector, dialer, 10*time.Minute)
}

// New returns a Store for a pool of the caller's, which the caller closes after the Store: one that logs in by tokens, or is
// dialed by code of its own. pgx's stdlib.OpenDBFromPool makes one of a pgxpool.Pool. namespace and table may be empty, for the
// defaults of a URL. It sends nothing. Do not set pgx's BuildContextWatcherHandler to its CancelRequestContextWatcherHandler: a
// cancellation that arrives late ends the wait of the next statement for its standby, and the server acknowledges that statement.
func New(db *sql.DB, namespace, table string) (stores.Store, error) {
	return sqlstore.New(db, sqlstore.PostgreSQL(), namespace, table)
}

// errFiles is that of files that were good when the store was opened, and may be good again soon.
var errFiles = stores.Transient.New("a file of certificates, a key or passwords cannot be read any more")

// configOf returns pgx's configuration. It reads the files that the URL and the environment name.
func configOf(u *engine.URL, dialer *dial.Dialer) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(u.URL.String())
	if err != nil {
		return nil, err
	}
	query := u.URL.Query()
	if !query.Has("default_query_exec_mode") {
		// This needs no round trip to prepare a statement, and no prepared statements,
		// which a pooling proxy loses.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if severalHosts(config) {
		// pgx tries one host after the other. A host that hangs must not delay it for long.
		if config.ConnectTimeout == 0 {
			config.ConnectTimeout = 2 * time.Second
		}
		if config.ValidateConnect == nil && !query.Has("target_session_attrs") {
			config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
		}
	}
	if validate := config.ValidateConnect; validate != nil {
		config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			err := validate(ctx, conn)
			if errors.Is(err, pgconn.ErrStandbyConnection) || errors.Is(err, pgconn.ErrReadOnlyConnection) {
				return noPrimary{err}
			}
			return err
		}
	}
	config.DialFunc = dialer.Dial
	return config, nil
}

// noPrimary is the error of a host that is not the primary, which may change. It has the code
// of a server that takes no connection now. So it counts, rather than the refusal of the
// attempt without TLS that pgx makes next with sslmode=prefer, its default.
type noPrimary struct{ error }

func (noPrimary) SQLState() string { return "57P03" }

func (e noPrimary) Unwrap() error { return e.error }

// withhold returns the part of pgx's error that may be shown. Its message begins with the whole
// URL, between backquotes, and leaves the password out only at its usual place.
func withhold(err error) error {
	_, message, _ := strings.Cut(err.Error(), "`: ")
	return engine.Withhold(err, message, "port", "connect_timeout", "target_session_attrs", "service",
		"sslmode", "sslcertmode", "sslnegotiation", "sslrootcert", "CA", "sslcert", "sslkey", "sslpassword", "cert", "key", "TLS",
		"channel_binding", "require_auth", "min_protocol_version", "max_protocol_version",
		"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity")
}

// severalHosts reports whether the URL has several hosts. Fallbacks also has the same host,
// without TLS.
func severalHosts(config *pgx.ConnConfig) bool {
	for _, f := range config.Fallbacks {
		if f.Host != config.Host || f.Port != config.Port {
			return true
		}
	}
	return false
}

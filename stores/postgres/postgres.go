package postgres

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/internal/remote"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// Store is a [lease.Store] in a table of a PostgreSQL database. Its methods are those of
// [sqlstore.Store], and Close. It is safe for use by several goroutines at once.
type Store struct {
	*sqlstore.Store
	opened *sql.DB // nil if New was given it
}

var _ lease.Store = (*Store)(nil)

// New returns a Store of the cells of a namespace, in the database behind db. Of a
// pgxpool.Pool, pgx's stdlib.OpenDBFromPool makes one. It sends nothing; the first
// use does. The error is a [*lease.NamespaceError] or a [*sqlstore.TableError]; a nil db
// or option is an error, too.
//
// The connections must lead to the primary. With pgx's default settings, each
// statement takes a second round trip when a connection first sends it.
func New(db *sql.DB, namespace string, opts ...sqlstore.Option) (*Store, error) {
	s, err := sqlstore.New(db, sqlstore.PostgreSQL(), namespace, opts...)
	if err != nil {
		return nil, err
	}
	return &Store{Store: s}, nil
}

// Open returns a Store in the database of a URL that begins with postgres:// or
// postgresql://. Two parameters are its own:
//
//	namespace=NAME   the namespace, 1 to 48 ASCII letters, digits, hyphens and
//	                 underscores; without it, lease.DefaultNamespace
//	table=NAME       the table, with the name of a schema and a dot before it or not;
//	                 without it, sqlstore.DefaultTable
//
// All others are pgx's, which are those of libpq: sslmode and sslrootcert for TLS,
// sslcert and sslkey, passfile, connect_timeout. The password may come from
// PGPASSWORD or a passfile, too. Several hosts are given as
// postgres:///db?host=a,b&port=5432,5432; then the primary among them is chosen, unless
// target_session_attrs says otherwise.
//
// It sends nothing: an unreachable server or a wrong password is the error of the
// first use. At most four connections are opened, and one is kept, for up to ten
// minutes.
//
// The error is a [*lease.URLError], or that of ctx if it has ended. It never holds the
// password, nor any of what pgx repeats of the URL.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u, err := remote.ParseDriverURL(rawURL, []string{"postgres", "postgresql"}, "table")
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(u.URL.String())
	if err != nil {
		return nil, u.Refuse("pgx does not take it", withhold(err))
	}
	query := u.URL.Query()
	if !query.Has("default_query_exec_mode") {
		// Neither a round trip for preparing nor prepared statements, which get
		// lost behind a pooling proxy.
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if config.ValidateConnect == nil && !query.Has("target_session_attrs") && severalHosts(config) {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}

	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(1) // a fleet of a thousand should not hold thousands
	db.SetConnMaxIdleTime(10 * time.Minute)
	var opts []sqlstore.Option
	if table, ok := u.Own["table"]; ok {
		opts = append(opts, sqlstore.WithTable(table))
	}
	s, err := New(db, u.Namespace, opts...)
	if err != nil {
		_ = db.Close() // nothing was opened yet
		return nil, u.Refuse("the parameter table cannot be used", err)
	}
	s.opened = db
	return s, nil
}

// withhold returns what may be shown of pgx's error. Its message begins with the whole
// URL, between backquotes, with the password left out only where it is expected.
func withhold(err error) error {
	_, message, _ := strings.Cut(err.Error(), "`: ")
	return remote.Withhold(err, message, "port", "connect_timeout", "target_session_attrs", "service",
		"sslmode", "sslcertmode", "sslnegotiation", "sslrootcert", "CA", "sslcert", "sslkey", "sslpassword", "cert", "key", "TLS",
		"channel_binding", "require_auth", "min_protocol_version", "max_protocol_version",
		"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity")
}

// Fallbacks has the same host, too, without TLS.
func severalHosts(config *pgx.ConnConfig) bool {
	for _, f := range config.Fallbacks {
		if f.Host != config.Host || f.Port != config.Port {
			return true
		}
	}
	return false
}

// Close closes what Open has opened, waits for statements that run, and returns the
// driver's error. A Store that New returned keeps the caller's connections open. It may
// be called more than once.
func (s *Store) Close() error {
	if s.opened == nil {
		return nil
	}
	return s.opened.Close()
}

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/internal/remote"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// Store is a [lease.Store] in a table of a MySQL or MariaDB database. Its methods are
// those of [sqlstore.Store], and Close. It is safe for use by several goroutines at once.
type Store struct {
	*sqlstore.Store
	opened *sql.DB // nil if New was given it
}

var _ lease.Store = (*Store)(nil)

// New returns a Store of the cells of a namespace, in the database behind db. It
// sends nothing; the first use does. The error is a [*lease.NamespaceError] or a
// [*sqlstore.TableError]; a nil db or option is an error, too.
//
// The connections must lead to the primary, with autocommit on and the character set
// utf8mb4, the driver's default. Its option interpolateParams saves each operation a
// round trip.
func New(db *sql.DB, namespace string, opts ...sqlstore.Option) (*Store, error) {
	s, err := sqlstore.New(db, sqlstore.MySQL(number), namespace, opts...)
	if err != nil {
		return nil, err
	}
	return &Store{Store: s}, nil
}

func number(err error) uint16 {
	if e, ok := errors.AsType[*driver.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// Open returns a Store in the database of a URL of the form
// mysql://user:password@host:port/database; the port is 3306 unless given. Three
// parameters are its own:
//
//	namespace=NAME   the namespace, 1 to 48 ASCII letters, digits, hyphens and
//	                 underscores; without it, lease.DefaultNamespace
//	table=NAME       the table, with the name of a database and a dot before it or not;
//	                 without it, sqlstore.DefaultTable
//	socket=PATH      a Unix socket to connect to instead of a host
//
// All others are the driver's, as in its DSN: tls=true for TLS (or the name of a
// configuration that was registered with the driver), timeout, readTimeout and so on;
// it takes a name it does not know for that of a system variable. interpolateParams is
// on unless the URL says otherwise.
//
// It sends nothing: an unreachable server or a wrong password is the error of the
// first use. At most four connections are opened, and one is kept, for up to three
// minutes. The driver's messages to standard error are switched off.
//
// The error is a [*lease.URLError], or that of ctx if it has ended. It never holds the
// password, nor any of what the driver repeats of the URL.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	u, err := remote.ParseDriverURL(rawURL, []string{"mysql"}, "table")
	if err != nil {
		return nil, err
	}
	config, err := configOf(u)
	if err != nil {
		return nil, err
	}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, u.Refuse("the driver does not take it", remote.Withhold(err, err.Error()))
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(1) // a fleet of a thousand should not hold thousands
	db.SetConnMaxIdleTime(3 * time.Minute)
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

// configOf returns the driver's configuration. The driver only parses the parameters,
// and the address that a certificate must be for; so a password with special characters
// needs no second encoding.
func configOf(source *remote.DriverURL) (*driver.Config, error) {
	u := source.URL
	fail := func(problem string, err error) (*driver.Config, error) {
		return nil, source.Refuse(problem, err)
	}
	var socket string
	params := []string{"interpolateParams=true"} // the last one counts
	for param := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(param, "=")
		switch {
		case name == "socket":
			socket, _ = url.QueryUnescape(value)
		case name == "strict":
			return fail("it has the parameter strict, which the driver has no longer", nil) // and panics at
		case param != "":
			params = append(params, strings.ReplaceAll(param, "/", "%2F"))
		}
	}
	database := strings.TrimPrefix(u.Path, "/")
	switch {
	case database == "":
		return fail("it names no database; want mysql://user:password@host:port/database", nil)
	case socket == "" && u.Hostname() == "":
		return fail("it names no host, nor a socket", nil)
	case socket != "" && u.Host != "":
		return fail("it names a host and a socket", nil)
	case strings.ContainsAny(u.Host, "()"):
		return fail("its host is none", nil)
	}
	address := ""
	if socket == "" {
		port := u.Port()
		if port == "" {
			port = "3306"
		}
		address = fmt.Sprintf("tcp(%s)", net.JoinHostPort(u.Hostname(), port))
	}
	config, err := driver.ParseDSN(address + "/?" + strings.Join(params, "&"))
	if err != nil {
		return fail("the driver does not take its parameters", remote.Withhold(err, culprit(params), words...))
	}
	if socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.DBName = database
	config.Logger = &driver.NopLogger{}
	return config, nil
}

// words are the names of the driver's parameters that it may object to.
var words = []string{
	"allowAllFiles", "allowCleartextPasswords", "allowFallbackToPlaintext", "allowNativePasswords",
	"allowOldPasswords", "checkConnLiveness", "clientFoundRows", "collation", "columnsWithAlias", "compress",
	"interpolateParams", "loc", "maxAllowedPacket", "multiStatements", "parseTime", "readTimeout",
	"rejectReadOnly", "serverPubKey", "timeout", "timeTruncate", "tls", "writeTimeout",
}

// culprit returns the name of the parameter that the driver does not take, which most
// of its messages do not tell.
func culprit(params []string) string {
	for _, param := range params {
		if _, err := driver.ParseDSN("/?interpolateParams=true&" + param); err != nil {
			name, _, _ := strings.Cut(param, "=")
			return name
		}
	}
	return ""
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

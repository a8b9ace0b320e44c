package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

var open = engine.Register("mysql", []string{"table"}, connect)

// number is the argument of [sqlstore.MySQL].
func number(err error) uint16 {
	if e, ok := errors.AsType[*driver.MySQLError](err); ok {
		return e.Number
	}
	for own, code := range numbers {
		if errors.Is(err, own) {
			return code
		}
	}
	return 0
}

// numbers are what MySQL's own client calls errors of the driver: a lost connection, a malformed packet, and a way to log in that
// it lacks.
var numbers = map[error]uint16{
	driver.ErrInvalidConn: 2013, driver.ErrMalformPkt: 2027, driver.ErrPktSync: 2027, driver.ErrUnknownPlugin: 2059,
	driver.ErrCleartextPassword: 2059, driver.ErrNativePassword: 2059, driver.ErrOldPassword: 2059, driver.ErrOldProtocol: 2059,
}

// connect opens a URL, as the package's doc describes it. It sends nothing, and turns
// off the driver's messages on standard error.
func connect(_ context.Context, u *engine.URL) (stores.Store, error) {
	config, err := configOf(u)
	if err != nil {
		return nil, err
	}
	dialer := &dial.Dialer{Most: dial.MaxConns} // the driver closes the connection of a statement that was given up
	config.DialFunc = dialer.Dial
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, u.Refuse("the driver does not take it", engine.Withhold(err, err.Error()))
	}
	return sqlstore.Open(u, sqlstore.MySQL(number), connector, dialer, 3*time.Minute)
}

// New returns a Store for a pool of the caller's with this driver, which the caller closes after the Store: one that logs in by
// tokens, or is dialed by code of its own. namespace and table may be empty, for the defaults of a URL. It sends nothing. The
// sessions' sql_mode must be strict, with NO_ENGINE_SUBSTITUTION, as is MySQL's default. A statement takes three round trips
// instead of one, since autocommit may be off. Set innodb_lock_wait_timeout and lock_wait_timeout to 1, as a URL does: see the
// package's doc.
func New(db *sql.DB, namespace, table string) (stores.Store, error) {
	return sqlstore.New(db, sqlstore.MySQL(number), namespace, table)
}

// configOf returns the driver's configuration. The driver parses only the parameters
// and the address, which certificates are checked against; so a password with special
// characters needs no second encoding.
func configOf(source *engine.URL) (*driver.Config, error) {
	u := source.URL
	params := append([]string{"interpolateParams=true"}, settings...) // of two for a name, the last counts
	for param := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(param, "=")
		switch {
		case name == "strict":
			return nil, source.Refuse("it has the parameter strict, which the driver no longer has", nil) // the driver would panic
		case strings.Contains(strings.ToLower(param), "autocommit"), strings.Contains(strings.ToLower(param), "sql_mode"):
			return nil, source.Refuse("it sets autocommit or sql_mode, which the store sets", nil)
		case param != "":
			params = append(params, strings.ReplaceAll(param, "/", "%2F"))
		}
	}
	database := strings.TrimPrefix(u.Path, "/")
	switch {
	case database == "":
		return nil, source.Refuse("it names no database; want mysql://user:password@host:port/database", nil)
	case u.Hostname() == "":
		return nil, source.Refuse("it names no host", nil)
	case strings.ContainsAny(u.Host, "()"):
		return nil, source.Refuse("its host is not a host name", nil)
	}
	address := fmt.Sprintf("tcp(%s)", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")))
	config, err := driver.ParseDSN(address + "/?" + strings.Join(params, "&"))
	if err != nil {
		return nil, source.Refuse("the driver does not take its parameters", engine.Withhold(err, culprit(params), culprit(params)))
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.DBName = database
	config.Logger = &driver.NopLogger{}
	return config, nil
}

// settings are the system variables of each session. Without autocommit, nothing would be committed; a server that is not strict
// cuts off what does not fit into a table that was made by hand, such as versions; and another engine than InnoDB forgets. The others bound the wait for
// a row, and for a table, in seconds. Their defaults are 50, and a day or a year, and the server keeps a
// connection while its statement waits, even if the client is gone. 1 is the smallest value
// of MySQL; a statement that has waited that long is sent again until its context ends.
var settings = []string{"autocommit=1", "sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'", "innodb_lock_wait_timeout=1", "lock_wait_timeout=1"}

// culprit returns the name of the parameter that the driver refuses. Most of its messages
// do not have the name. It is one of the driver's: any other stands for a variable of the session, which the server refuses.
func culprit(params []string) string {
	for _, param := range params {
		if _, err := driver.ParseDSN("/?interpolateParams=true&" + param); err != nil {
			name, _, _ := strings.Cut(param, "=")
			return name
		}
	}
	return ""
}

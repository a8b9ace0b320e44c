package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/integration/program"
)

// how says how a kind is run, and how to ask it for its version, which it tells once it is
// ready.
type how struct {
	name, debian string   // of the program and what installs it, see program.Find; "" is this program
	dirs         []string // that have it, see program.Find
	user         string   // who runs it, see program.Config
	quit         os.Signal
	url          url.URL // without the address; a user has a password

	// prepare makes what is in the server's directory, and returns the arguments.
	prepare func(context.Context, *Server, Wanted) ([]string, error)
	version func(context.Context, *Server) (string, error)
}

// zookeeperJar is where Debian's package zookeeper puts the server; its manifest names
// the other jars.
const zookeeperJar = "/usr/share/java/zookeeper.jar"

// kinds has how each kind is run. Packages etcd and nats, below this one, add theirs, and kubernetes.go and s3.go their own.
var kinds = map[Kind]how{
	// SIGQUIT ends it at once, and it frees its shared memory.
	PostgreSQL: {name: "postgres", debian: "postgresql", dirs: []string{"/usr/lib/postgresql/*/bin"}, user: "postgres", quit: syscall.SIGQUIT,
		url:     url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "postgres", RawQuery: "sslmode=disable"},
		prepare: preparePostgreSQL, version: versionOfSQL("SHOW server_version")},
	MariaDB: {name: "mariadbd", debian: "mariadb-server", dirs: []string{"/usr/sbin"}, user: "mysql",
		url: url.URL{Scheme: "mysql", User: url.User("rig"), Path: "rig"}, prepare: prepareMariaDB, version: versionOfSQL("SELECT VERSION()")},
	Redis: {name: "redis-server", debian: "redis-server", url: url.URL{Scheme: "redis", User: url.User("default"), Path: "0"},
		prepare: prepareRedis, version: versionOfRedis},
	ZooKeeper: {name: "java", debian: "default-jre-headless", quit: syscall.SIGTERM, url: url.URL{Scheme: "zk"},
		prepare: prepareZooKeeper, version: versionOfZooKeeper},
}

// tool runs a program of the server's package that makes its data.
func (s *Server) tool(ctx context.Context, name string, args ...string) error {
	path, err := program.Find(name, s.how.debian, s.how.dirs...)
	if err == nil {
		_, err = program.Run(ctx, program.Config{Path: path, Dir: s.Dir, User: s.how.user, Env: []string{"TMPDIR=" + s.Dir, "PGPASSWORD=" + s.Password}, Args: args})
	}
	return err
}

func preparePostgreSQL(ctx context.Context, s *Server, w Wanted) (args []string, err error) {
	file, data := filepath.Join(s.Dir, "password"), filepath.Join(s.Dir, "data")
	if w.Copy != nil {
		err = s.tool(ctx, "pg_basebackup", "-h", "127.0.0.1", "-p", w.Copy.Port(), "-U", "postgres", "-D", data, "-R", "-c", "fast", "--no-sync")
	} else {
		// All users may read the file, but not enter its directory.
		err = errors.Join(os.WriteFile(file, []byte(s.Password+"\n"), 0o644),
			s.tool(ctx, "initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", file, "-E", "UTF8", "--no-sync"))
	}
	return append([]string{"-D", data, "-k", s.Dir, "-p", s.Port(), "-c", "listen_addresses=127.0.0.1"}, w.Settings...), err
}

func prepareMariaDB(ctx context.Context, s *Server, w Wanted) ([]string, error) {
	data := "--datadir=" + filepath.Join(s.Dir, "data")
	if err := s.tool(ctx, "mariadb-install-db", "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db",
		"--debug-no-sync", "--innodb-flush-method=nosync"); err != nil {
		return nil, err
	}
	// The server runs this file before it listens, at each start. It drops root, who has no
	// password. No replica gets the statements.
	file := filepath.Join(s.Dir, "init.sql")
	text := fmt.Sprintf("SET sql_log_bin = 0;\nCREATE DATABASE IF NOT EXISTS rig;\nCREATE USER IF NOT EXISTS rig IDENTIFIED BY '%s';\n"+
		"GRANT ALL ON *.* TO rig WITH GRANT OPTION;\nDELETE FROM mysql.global_priv WHERE User IN ('root', '');\nFLUSH PRIVILEGES;\n", s.Password)
	// A server that starts removes the temporary tables of all others in its directory of these.
	return append([]string{"--no-defaults", data, "--socket=" + filepath.Join(s.Dir, "s"), "--bind-address=127.0.0.1", "--tmpdir=" + s.Dir,
		"--port=" + s.Port(), "--pid-file=" + filepath.Join(s.Dir, "pid"), "--init-file=" + file}, w.Settings...), os.WriteFile(file, []byte(text), 0o644)
}

func prepareRedis(_ context.Context, s *Server, w Wanted) ([]string, error) {
	return append([]string{"--port", s.Port(), "--bind", "127.0.0.1", "--dir", s.Dir, "--requirepass", s.Password, "--masterauth", s.Password}, w.Settings...), nil
}

// The last line of a name counts.
func prepareZooKeeper(_ context.Context, s *Server, w Wanted) ([]string, error) {
	if _, err := os.Stat(zookeeperJar); err != nil {
		return nil, &program.MissingError{Name: zookeeperJar, Package: "zookeeper"}
	}
	lines := []string{"tickTime=2000", "dataDir=" + s.Dir, "clientPort=" + s.Port(), "clientPortAddress=127.0.0.1", "admin.enableServer=false", "maxClientCnxns=0"}
	for _, line := range w.Settings {
		if id, ok := strings.CutPrefix(line, "myid="); !ok {
			lines = append(lines, line)
		} else if err := os.WriteFile(filepath.Join(s.Dir, "myid"), []byte(id), 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"-Xmx1000m", "-Dzookeeper.jmx.log4j.disable=true", "-cp", zookeeperJar + ":/usr/share/java/slf4j-nop.jar",
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.file()}, s.Configure(lines...)
}

// DSN is URL as the driver of MySQL wants it.
func (s *Server) DSN() string {
	config := s.mysql()
	config.ParseTime = true
	return config.FormatDSN()
}

func (s *Server) mysql() *mysql.Config {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", s.Addr, "rig", s.Password, "rig"
	return config
}

// SQL returns a pool of at most one connection to a PostgreSQL or MariaDB server, with
// settings of the session. The caller closes it.
func (s *Server) SQL(settings map[string]string) (*sql.DB, error) {
	var db *sql.DB
	switch s.Kind {
	case PostgreSQL:
		config, err := pgx.ParseConfig(s.URL)
		if err != nil {
			return nil, err
		}
		for name, value := range settings {
			config.RuntimeParams[name] = value
		}
		db = stdlib.OpenDB(*config)
	case MariaDB:
		config := s.mysql()
		config.Params, config.Logger = settings, &mysql.NopLogger{}
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		db = sql.OpenDB(connector)
	default:
		return nil, fmt.Errorf("%s takes no SQL", s.Kind)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Redis returns a client of a Redis server. The caller closes it.
func (s *Server) Redis() (*redis.Client, error) {
	options, err := redis.ParseURL(s.URL)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(options), nil
}

func versionOfSQL(query string) func(context.Context, *Server) (string, error) {
	return func(ctx context.Context, s *Server) (version string, err error) {
		db, err := s.SQL(nil)
		if err != nil {
			return "", err
		}
		defer func() { _ = db.Close() }()
		return version, db.QueryRowContext(ctx, query).Scan(&version)
	}
}

func versionOfRedis(ctx context.Context, s *Server) (string, error) {
	client, err := s.Redis()
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "server").Result()
	_, version, _ := strings.Cut(info, "redis_version:")
	version, _, _ = strings.Cut(version, "\r")
	return version, err
}

// versionOfZooKeeper is known once it serves requests.
func versionOfZooKeeper(ctx context.Context, s *Server) (string, error) {
	answer, err := s.Srvr(ctx)
	if err == nil && !strings.Contains(answer, "Mode: ") {
		err = errors.New("it does not serve requests yet")
	}
	_, version, _ := strings.Cut(answer, "Zookeeper version: ")
	version, _, _ = strings.Cut(version, "-")
	return version, err
}

// Srvr is what a ZooKeeper says about itself by the command srvr, which is the only one that is allowed by
// default.
func (s *Server) Srvr(ctx context.Context) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

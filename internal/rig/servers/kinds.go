package servers

import (
	"bytes"
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

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/internal/rig/server"
)

// how says how a kind is run, and how to ask it for its version, which it tells once it is
// ready.
type how struct {
	prepare func(context.Context, *Server, Wanted) (server.Config, error)
	version func(context.Context, *Server) (string, error)
}

var kinds = map[Kind]how{
	Directory:  {},
	PostgreSQL: {preparePostgreSQL, versionOfSQL("SHOW server_version")},
	MariaDB:    {prepareMariaDB, versionOfSQL("SELECT VERSION()")},
	Redis:      {prepareRedis, versionOfRedis},
	ZooKeeper:  {prepareZooKeeper, versionOfZooKeeper},
}

func preparePostgreSQL(ctx context.Context, s *Server, w Wanted) (server.Config, error) {
	s.Password = password
	s.URL = s.url("postgres", "postgres", "postgres", "sslmode=disable")
	config, err := server.PostgreSQL(ctx, s.Dir, w.Port, s.Password)
	config.Args = append(config.Args, w.Settings...)
	return config, err
}

func prepareMariaDB(ctx context.Context, s *Server, w Wanted) (server.Config, error) {
	config, _, err := server.MariaDB(ctx, s.Dir, w.Port)
	if err != nil {
		return server.Config{}, err
	}
	s.Password = password
	// The server runs this file before it listens, at each start. It drops root, who has no
	// password. No replica gets the statements.
	file := filepath.Join(s.Dir, "init.sql")
	text := fmt.Sprintf("SET sql_log_bin = 0;\nCREATE DATABASE IF NOT EXISTS rig;\nCREATE USER IF NOT EXISTS rig IDENTIFIED BY '%s';\n"+
		"GRANT ALL ON *.* TO rig WITH GRANT OPTION;\nDELETE FROM mysql.global_priv WHERE User IN ('root', '');\nFLUSH PRIVILEGES;\n", s.Password)
	// All users may read the file, but not enter its directory.
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return server.Config{}, fmt.Errorf("write the first statements of MariaDB: %w", err)
	}
	config.Args = append(append(config.Args, "--init-file="+file), w.Settings...)
	s.URL = s.url("mysql", "rig", "rig", "")
	return config, nil
}

func prepareRedis(_ context.Context, s *Server, w Wanted) (server.Config, error) {
	config, err := server.Redis(s.Dir, w.Port)
	s.Password = password
	config.Args = append(append(config.Args, "--requirepass", s.Password, "--masterauth", s.Password), w.Settings...)
	s.URL = s.url("redis", "default", "0", "")
	return config, err
}

// The last line of a name counts.
func prepareZooKeeper(_ context.Context, s *Server, w Wanted) (server.Config, error) {
	s.URL = "zk://" + s.Addr
	config, err := server.ZooKeeper(s.Dir, w.Port)
	if err != nil {
		return config, err
	}
	file, err := os.OpenFile(filepath.Join(s.Dir, "zoo.cfg"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return config, err
	}
	for _, line := range w.Settings {
		if id, ok := strings.CutPrefix(line, "myid="); ok {
			err = errors.Join(err, os.WriteFile(filepath.Join(s.Dir, "myid"), []byte(id), 0o600))
			continue
		}
		_, failed := fmt.Fprintln(file, line)
		err = errors.Join(err, failed)
	}
	return config, errors.Join(err, file.Close())
}

func (s *Server) url(scheme, user, path, query string) string {
	u := url.URL{Scheme: scheme, User: url.UserPassword(user, s.Password), Host: s.Addr, Path: path, RawQuery: query}
	return u.String()
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

// versionOfZooKeeper asks by the command srvr, which is the only one that is allowed by
// default.
func versionOfZooKeeper(ctx context.Context, s *Server) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
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
	if err == nil && !bytes.Contains(answer, []byte("Mode: ")) {
		err = errors.New("it does not serve requests yet")
	}
	_, version, _ := strings.Cut(string(answer), "Zookeeper version: ")
	version, _, _ = strings.Cut(version, "-")
	return version, err
}

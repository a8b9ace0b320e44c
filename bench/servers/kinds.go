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

	"github.com/tickflake/tickflake/internal/server"
)

// kinds says how each kind is run, and how to ask it for its version, which it tells once
// it is ready.
var kinds = map[Kind]struct {
	prepare func(ctx context.Context, s *Server, port int) (server.Config, error)
	version func(context.Context, *Server) (string, error)
}{
	PostgreSQL: {preparePostgreSQL, versionOfSQL("SHOW server_version")},
	MariaDB:    {prepareMariaDB, versionOfSQL("SELECT VERSION()")},
	Redis:      {prepareRedis, versionOfRedis},
	ZooKeeper:  {prepareZooKeeper, versionOfZooKeeper},
}

func preparePostgreSQL(ctx context.Context, s *Server, port int) (server.Config, error) {
	s.URL = s.url("postgres", "postgres", "postgres", "sslmode=disable")
	return server.PostgreSQL(ctx, s.dir, port, s.password)
}

func prepareMariaDB(ctx context.Context, s *Server, port int) (server.Config, error) {
	config, _, err := server.MariaDB(ctx, s.dir, port)
	if err != nil {
		return server.Config{}, err
	}
	// The server runs this file before it listens. It drops root, who has no password.
	file := filepath.Join(s.dir, "init.sql")
	text := fmt.Sprintf("CREATE DATABASE bench;\nCREATE USER bench IDENTIFIED BY '%s';\n"+
		"GRANT ALL ON *.* TO bench WITH GRANT OPTION;\nDELETE FROM mysql.global_priv WHERE User IN ('root', '');\nFLUSH PRIVILEGES;\n", s.password)
	// All users may read the file, but not enter its directory.
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return server.Config{}, fmt.Errorf("write the first statements of MariaDB: %w", err)
	}
	config.Args = append(config.Args, "--init-file="+file)
	s.URL = s.url("mysql", "bench", "bench", "")
	return config, nil
}

func prepareRedis(_ context.Context, s *Server, port int) (server.Config, error) {
	config, err := server.Redis(s.dir, port)
	config.Args = append(config.Args, "--requirepass", s.password)
	s.URL = s.url("redis", "default", "0", "")
	return config, err
}

func prepareZooKeeper(_ context.Context, s *Server, port int) (server.Config, error) {
	s.URL = "zk://" + s.Addr
	return server.ZooKeeper(s.dir, port)
}

func (s *Server) url(scheme, user, path, query string) string {
	u := url.URL{Scheme: scheme, User: url.UserPassword(user, s.password), Host: s.Addr, Path: path, RawQuery: query}
	return u.String()
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
		config := mysql.NewConfig()
		config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", s.Addr, "bench", s.password, "bench"
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

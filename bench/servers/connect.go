package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
)

// SQL returns a pool of at most one connection to a PostgreSQL or MariaDB server, in
// the database of the URL, with settings of the session. The caller closes it.
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

func versionOfSQL(ctx context.Context, s *Server, query string) (version string, err error) {
	db, err := s.SQL(nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	return version, db.QueryRowContext(ctx, query).Scan(&version)
}

func versionOfPostgreSQL(ctx context.Context, s *Server) (string, error) {
	return versionOfSQL(ctx, s, "SHOW server_version")
}

func versionOfMariaDB(ctx context.Context, s *Server) (string, error) {
	return versionOfSQL(ctx, s, "SELECT VERSION()")
}

func versionOfRedis(ctx context.Context, s *Server) (string, error) {
	client, err := s.Redis()
	if err != nil {
		return "", err
	}
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "server").Result()
	return after(info, "redis_version:"), err
}

func versionOfZooKeeper(ctx context.Context, s *Server) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	if after(string(answer), "Mode: ") == "" {
		return "", errors.New("it does not serve requests yet")
	}
	return strings.Split(after(string(answer), "Zookeeper version: "), "-")[0], nil
}

// after returns what follows the label in its line.
func after(text, label string) string {
	_, text, _ = strings.Cut(text, label)
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

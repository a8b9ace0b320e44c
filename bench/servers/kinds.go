package servers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tickflake/tickflake/internal/server"
)

// kinds says how each kind is run, and how to ask it for its version, which it tells
// once it is ready.
var kinds = map[Kind]struct {
	prepare func(ctx context.Context, s *Server, port int) (server.Config, error)
	version func(context.Context, *Server) (string, error)
}{
	PostgreSQL: {preparePostgreSQL, versionOfPostgreSQL},
	MariaDB:    {prepareMariaDB, versionOfMariaDB},
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
	// What the server runs before it listens: root, who has no password, goes.
	file := filepath.Join(s.dir, "init.sql")
	text := fmt.Sprintf("CREATE DATABASE bench;\nCREATE USER bench IDENTIFIED BY '%s';\n"+
		"GRANT ALL ON *.* TO bench WITH GRANT OPTION;\nDELETE FROM mysql.global_priv WHERE User IN ('root', '');\nFLUSH PRIVILEGES;\n", s.password)
	// It is readable by all: the directory is not.
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return server.Config{}, fmt.Errorf("write what MariaDB runs first: %w", err)
	}
	config.Args = append(config.Args, "--init-file="+file)
	s.URL = s.url("mysql", "bench", "bench")
	return config, nil
}

func prepareRedis(_ context.Context, s *Server, port int) (server.Config, error) {
	config, err := server.Redis(s.dir, port)
	config.Args = append(config.Args, "--requirepass", s.password)
	s.URL = s.url("redis", "default", "0")
	return config, err
}

func prepareZooKeeper(_ context.Context, s *Server, port int) (server.Config, error) {
	s.URL = "zk://" + s.Addr
	return server.ZooKeeper(s.dir, port)
}

func (s *Server) url(scheme, user, path string, params ...string) string {
	u := url.URL{Scheme: scheme, User: url.UserPassword(user, s.password), Host: s.Addr, Path: path,
		RawQuery: strings.Join(params, "&")}
	return u.String()
}

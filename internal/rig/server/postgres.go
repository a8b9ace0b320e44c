package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// PostgreSQL makes a new database cluster in dir, makes the user that PostgreSQL runs as
// the owner of dir, and returns how to run it on a port of 127.0.0.1. The superuser is
// postgres, with the password. Settings of postgresql.conf may be appended to the
// arguments, as "-c", "NAME=VALUE". The caller sets Ready.
//
// The error is a [*MissingError], or has the output of initdb.
func PostgreSQL(ctx context.Context, dir string, port int, password string) (Config, error) {
	const user, bins = "postgres", "/usr/lib/postgresql/*/bin"
	initdb, err := Find("initdb", "postgresql", bins)
	if err != nil {
		return Config{}, err
	}
	bin, err := Find("postgres", "postgresql", bins)
	if err != nil {
		return Config{}, err
	}
	if err := give(dir, user); err != nil {
		return Config{}, fmt.Errorf("give %s to user %s: %w", dir, user, err)
	}
	file, data := filepath.Join(dir, "password"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		return Config{}, fmt.Errorf("write the password for initdb: %w", err)
	}
	if err := give(file, user); err != nil {
		return Config{}, fmt.Errorf("give %s to user %s: %w", file, user, err)
	}
	c := Config{Path: initdb, Dir: dir, User: user,
		Args: []string{"-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", file, "-E", "UTF8", "--no-sync"}}
	if _, err := Run(ctx, c); err != nil {
		return Config{}, err
	}
	c.Path = bin
	c.Args = []string{"-D", data, "-k", dir, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1"}
	c.Quit = syscall.SIGQUIT // ends at once, and frees its shared memory
	return c, nil
}

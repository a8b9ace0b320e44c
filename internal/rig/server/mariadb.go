package server

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// MariaDB makes a new data directory in dir, and makes the user that MariaDB runs as the
// owner of dir. It returns how to run MariaDB on a port of 127.0.0.1, and the path of its
// Unix socket, on which the user root needs no password. Settings may be appended to the
// arguments. The caller sets Ready.
//
// The error is a [*MissingError], or has the output of mariadb-install-db.
func MariaDB(ctx context.Context, dir string, port int) (c Config, socket string, err error) {
	const user, debianPackage = "mysql", "mariadb-server"
	install, err := Find("mariadb-install-db", debianPackage)
	if err != nil {
		return Config{}, "", err
	}
	bin, err := Find("mariadbd", debianPackage, "/usr/sbin")
	if err != nil {
		return Config{}, "", err
	}
	if err := give(dir, user); err != nil {
		return Config{}, "", fmt.Errorf("give %s to user %s: %w", dir, user, err)
	}
	data := "--datadir=" + filepath.Join(dir, "data")
	// A server that starts removes the temporary tables of all others in its TMPDIR.
	c = Config{Path: install, Dir: dir, User: user, Env: []string{"TMPDIR=" + dir},
		Args: []string{"--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"}}
	if _, err := Run(ctx, c); err != nil {
		return Config{}, "", err
	}
	socket = filepath.Join(dir, "s")
	c.Path = bin
	c.Args = []string{"--no-defaults", data, "--socket=" + socket, "--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(port), "--pid-file=" + filepath.Join(dir, "pid")}
	return c, socket, nil
}

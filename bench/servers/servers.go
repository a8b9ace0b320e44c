// Package servers runs the database servers of a section: private ones on free ports of
// 127.0.0.1, with their data in temporary directories. The programs must be installed. If
// this program is killed, the servers end too (on Linux), but their directories stay, in
// /var/tmp or TMPDIR.
//
// You need these names: [Start] runs what is [Wanted] and returns [Server] values;
// [Reason] shortens their errors.
//
// The servers have their default settings, but for ports, paths, passwords and the
// settings of [Wanted].
package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tickflake/tickflake/internal/server"
)

// Kind is the program of a server.
type Kind string

// The kinds of servers.
const (
	PostgreSQL Kind = "PostgreSQL"
	MariaDB    Kind = "MariaDB"
	Redis      Kind = "Redis"
	ZooKeeper  Kind = "ZooKeeper"
)

// Wanted is a server to start.
type Wanted struct {
	Kind     Kind
	Settings []string // further arguments
}

// Server is one that runs, unless Err is set.
type Server struct {
	Kind    Kind
	Version string
	Addr    string // host and port
	// URL is that of stores.Open, without a namespace. Its user may do everything.
	URL string
	// Err is why it does not run. If it is not installed, Err names Debian's package.
	Err error

	password string
	dir      string
	process  *server.Process
}

// Start starts servers, all at once, and returns when each is ready or has failed. stop
// ends them and removes their data. The caller must call it, and may call it again. When
// ctx ends, servers that are not ready yet fail.
func Start(ctx context.Context, wanted ...Wanted) (started []*Server, stop func() error) {
	var starting sync.WaitGroup
	taken := map[int]bool{}
	for _, w := range wanted {
		s := &Server{Kind: w.Kind}
		started = append(started, s)
		port, err := server.Port()
		for err == nil && taken[port] { // by a server of ours that does not listen yet
			port, err = server.Port()
		}
		taken[port] = true
		starting.Go(func() {
			if err == nil {
				err = s.start(ctx, port, w.Settings)
			}
			if err != nil {
				s.Err = errors.Join(err, s.stop())
			}
		})
	}
	starting.Wait()
	return started, sync.OnceValue(func() error {
		errs := make([]error, len(started))
		var stopping sync.WaitGroup
		for i, s := range started {
			stopping.Go(func() { errs[i] = s.stop() })
		}
		stopping.Wait()
		return errors.Join(errs...)
	})
}

// start starts the server. After an error, stop removes its files.
func (s *Server) start(ctx context.Context, port int, settings []string) error {
	how, ok := kinds[s.Kind]
	if !ok {
		return fmt.Errorf("no server is called %q", s.Kind)
	}
	var err error
	if s.dir, err = Dir(); err != nil {
		return err
	}
	// Every user of the machine can reach the port, so there is a password, except with
	// ZooKeeper, which has nothing to steal or run.
	s.Addr, s.password = fmt.Sprint("127.0.0.1:", port), rand.Text()
	config, err := how.prepare(ctx, s, port)
	if err != nil {
		return err
	}
	config.Args = append(config.Args, settings...)
	config.Ready = func(ctx context.Context) (err error) {
		s.Version, err = how.version(ctx, s)
		return err
	}
	config.Wait = 30 * time.Second
	s.process, err = server.Start(ctx, config)
	return err
}

func (s *Server) stop() error {
	var err error
	if s.process != nil {
		err = s.process.Stop()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// Missing reports whether a server does not run because it is not installed.
func (s *Server) Missing() bool {
	_, missing := errors.AsType[*server.MissingError](s.Err)
	return missing
}

// Dir makes a directory like those of the servers. The caller removes it.
func Dir() (string, error) {
	// /tmp is in memory on many systems, where a sync costs nothing. /var/tmp is not.
	base := ""
	if info, err := os.Stat("/var/tmp"); err == nil && info.IsDir() && os.Getenv("TMPDIR") == "" {
		base = "/var/tmp"
	}
	return server.Dir(base, "")
}

// Reason is an error on one line, of limited length: an error of a server ends with what
// the server has printed.
func Reason(err error) string {
	text := []rune(strings.Join(strings.Fields(err.Error()), " "))
	if len(text) > mostReason {
		return string(text[:mostReason]) + "…"
	}
	return strings.TrimSuffix(string(text), ".")
}

const mostReason = 400

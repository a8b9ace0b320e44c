//go:build unix

package program

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/tickflake/tickflake/integration/stepped"
)

// ServeConfig says how to run "tickflake serve".
type ServeConfig struct {
	Store string   // its URL, or a directory
	Args  []string // more flags
	Clock bool     // the wall clock can be stepped, see Server.Clock
	Raw   bool     // with Clock: the server reads it directly, not through a monoclock
}

// Server is a process of "tickflake serve". Its methods are those of a [Process]: Kill and
// Start start it again at its addresses, End drains it, Suspend freezes it.
type Server struct {
	*Process
	RESP, GRPC, HTTP string       // addresses
	Clock            stepped.Page // if it has one
	dir              string
}

// Serve starts a server at free ports of 127.0.0.1, and returns when it is ready. The caller
// closes it.
func Serve(ctx context.Context, c ServeConfig) (_ *Server, err error) {
	s, probes := &Server{}, ""
	for _, address := range []*string{&s.RESP, &s.GRPC, &s.HTTP, &probes} {
		if *address, err = FreeAddress(); err != nil {
			return nil, err
		}
	}
	p := Config{Quit: syscall.SIGTERM, Ready: func(ctx context.Context) error {
		_, err := Get(ctx, "http://"+probes+"/readyz", "")
		return err
	},
		Env:  []string{"GORACE=" + os.Getenv("GORACE") + " atexit_sleep_ms=0"},
		Args: append([]string{"serve", "--store", c.Store, "--resp", s.RESP, "--grpc", s.GRPC, "--http", s.HTTP, "--probes", probes}, c.Args...)}
	if p.Path, err = Build("./cmd/tickflake", c.Clock); err != nil {
		return nil, err
	}
	if s.dir, err = Dir("", ""); err != nil {
		return nil, err
	}
	if c.Clock {
		path := filepath.Join(s.dir, "clock")
		if s.Clock, err = stepped.Open(path); err != nil {
			return nil, err
		}
		p.Env = append(p.Env, stepped.SteppedBy+"="+path)
		if c.Raw {
			p.Env = append(p.Env, stepped.ReadsRaw+"=1")
		}
	}
	if s.Process, err = Start(ctx, p); err != nil {
		_ = os.RemoveAll(s.dir)
		return nil, err
	}
	return s, nil
}

// Close ends the server, by SIGTERM or, after ten seconds, by SIGKILL.
func (s *Server) Close() error {
	err := s.Stop()
	_ = os.RemoveAll(s.dir) // of the system's temporary directory
	return err
}

// Tickflake runs the program tickflake with the arguments, and returns its output. With clock it
// is the program of servers whose clocks are stepped.
func Tickflake(ctx context.Context, clock bool, args ...string) (string, error) {
	path, err := Build("./cmd/tickflake", clock)
	if err != nil {
		return "", err
	}
	return Run(ctx, Config{Path: path, Args: args})
}

// FreeAddress returns an address of 127.0.0.1 at which no other process listens.
func FreeAddress() (string, error) {
	port, err := Port()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// Metrics asks the server for its metrics without labels, by their names in Prometheus.
func (s *Server) Metrics(ctx context.Context) (map[string]float64, error) {
	text, err := Get(ctx, "http://"+s.HTTP+"/metrics", "")
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name], _ = strconv.ParseFloat(value, 64) // 0 is no number
	}
	return all, err
}

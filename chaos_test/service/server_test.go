//go:build unix

package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
)

// addresses are those of one server.
type addresses struct{ RESP, GRPC, HTTP string }

// job makes this program a server.
type job struct {
	addresses
	Dir     string        // of the stores
	Unready time.Duration // that the server is unready before it stops accepting
}

const jobEnv = "TICKFLAKE_TEST_SERVICE"

// The sequences that servers create.
const (
	invoices = "invoices" // ordered
	tickets  = "tickets"  // segmented
)

// created are the definitions of the sequences. Segments are short, so that a killed server
// mostly loses one.
var created = []service.Create{
	{Prefix: invoices, Definition: sequence.Definition{Mode: sequence.Ordered, Start: 1}},
	{Prefix: tickets, Definition: sequence.Definition{Mode: sequence.Segmented, Start: 1, MinStep: 50, MaxStep: 50}},
}

// With jobEnv the test binary is a server.
func TestMain(m *testing.M) {
	if text := os.Getenv(jobEnv); text != "" {
		var j job
		err := json.Unmarshal([]byte(text), &j)
		if err == nil {
			err = j.serve()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serve serves until SIGTERM, and says when it listens.
func (j job) serve() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	g, err := generator.Open(ctx, filepath.Join(j.Dir, "nodes"), generator.WithLeaseOptions(lease.WithLogger(quiet())))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	store, err := stores.Open(ctx, filepath.Join(j.Dir, "sequences"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	c := service.Config{Generator: g, Store: store, Sequences: []sequence.Option{sequence.WithLogger(quiet())}, Create: created, UnreadyFor: j.Unready,
		Timeout: patience, DrainTimeout: 4 * patience, Logger: quiet()} // the disk may be busy
	if c.RESP, c.GRPC, c.HTTP, err = j.listen(); err != nil {
		return err
	}
	s, err := service.New(c)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	return s.Run(ctx)
}

// listen listens at the addresses.
func (a addresses) listen() (resp, grpc, http net.Listener, err error) {
	var all [3]net.Listener
	for i, addr := range []string{a.RESP, a.GRPC, a.HTTP} {
		if all[i], err = net.Listen("tcp", addr); err != nil {
			return nil, nil, nil, err
		}
	}
	return all[0], all[1], all[2], nil
}

// fixed returns addresses at which a server can be started again.
func fixed(t testing.TB) addresses {
	next := func() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(servertest.Port(t))) }
	return addresses{RESP: next(), GRPC: next(), HTTP: next()}
}

// process is a server in a process of its own.
type process struct {
	job
	cmd *exec.Cmd
}

// start starts the server, and returns when it listens.
func (j job) start(t testing.TB) *process {
	t.Helper()
	p, err := j.launch()
	require.NoError(t, err)
	t.Cleanup(p.kill)
	return p
}

func (j job) launch() (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	p := &process{job: j, cmd: exec.Command(self)}
	// A program with the race detector sleeps for a second before it ends.
	p.cmd.Env = append(os.Environ(), jobEnv+"="+string(text), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "serving" {
		return nil, fmt.Errorf("the server does not start: it says %q: %w", lines.Text(), errors.Join(lines.Err(), p.cmd.Wait()))
	}
	return p, nil
}

// kill is kill -9. It returns when the process has gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have gone
	_ = p.cmd.Wait()         // it was killed
}

// terminate asks the server to drain, and waits until it has ended.
func (p *process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// local is a server in this process.
type local struct {
	addresses
	*service.Server
	stop func() error // drains it; it may be called again
}

// serveHere serves c at addresses that the system chooses, until the test ends.
func serveHere(t testing.TB, c service.Config) *local {
	t.Helper()
	var err error
	c.RESP, c.GRPC, c.HTTP, err = addresses{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}.listen()
	require.NoError(t, err)
	if c.Logger == nil {
		c.Logger = quiet()
	}
	s, err := service.New(c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	l := &local{addresses: addresses{c.RESP.Addr().String(), c.GRPC.Addr().String(), c.HTTP.Addr().String()}, Server: s}
	var ended error
	stopped := false
	l.stop = func() error {
		cancel()
		if !stopped {
			ended, stopped = <-ran, true
		}
		return ended
	}
	t.Cleanup(func() { require.NoError(t, l.stop()) })
	return l
}

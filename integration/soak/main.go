//go:build linux

// Command soak runs fleets of the service for an hour under faults, and checks all they issue.
//
//	go run ./integration/soak
//	go run ./integration/soak --for 2m --store directory --json soak.json
//
// A fleet is three servers, each a process of the real "tickflake serve", on one store: a
// directory, or an etcd, an S3 or an API server of Kubernetes that the command runs. Six clients
// take IDs and numbers of a segmented and of an ordered sequence: three of package client, and one
// each of Redis, gRPC and HTTP that asks the next server after an error. A server reads a clock that
// the soak steps: the third one directly, the others through a monoclock, which sees a step when
// the server starts again.
//
// Every few seconds one fault of package fleet begins, and another one when it is over: a server is
// killed or drained and started again; it is stopped by SIGSTOP for a while; the network between
// the clients and a server, or between a server and the store, is closed or holds all bytes back; a
// clock is stepped; the store is killed and started again. The third server is never ended, so that
// its memory at the end can be compared with that at the start.
//
// These promises are checked:
//
//   - No ID and no number comes twice. All of them are kept, and compared.
//   - The IDs that a client of package client returns ascend, as do those of a server that keeps
//     its node number, as each other client sees them.
//   - The numbers of the ordered sequence are in the order of real time, across all clients.
//   - A call fails only with an error that says that no server serves it now.
//   - No server ends by itself.
//   - When the faults are over, each server serves IDs and both sequences again.
//   - Every call returns, at most a minute after its deadline of ten seconds.
//   - No server, and not the soak, has 64 MB, 256 goroutines or 64 files more at the end than
//     after the first minute.
//
// The exit code is 1 if one of them does not hold, and 2 if the soak could not run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
	_ "github.com/tickflake/tickflake/integration/servers/etcd"
)

// settings say how to run a soak.
type settings struct {
	length time.Duration
	stores []servers.Kind
	rate   float64        // calls per second of each client
	every  time.Duration  // the longest pause between two faults, and half of the longest fault
	step   time.Duration  // the largest offset of a clock
	only   *regexp.Regexp // the names of faults
	seed   uint64

	progress time.Duration // between two lines
	faults   []fleet.Fault // in addition
	each     func(i int, c *fleet.ServeConfig)
	ordered  []string // more flags of the creation of the ordered sequence
	until    string   // it ends when a broken promise or an example of it says this; empty: never
}

const (
	serverCount = 3
	goClients   = 3
	// window is the length of a grant of a server, so short that the store is sometimes away for
	// longer.
	window = "6s"
)

// stores are those of --store.
var stores = []servers.Kind{servers.Directory, servers.Etcd, servers.S3, servers.Kubernetes}

func main() {
	os.Setenv("AWS_ACCESS_KEY_ID", servers.S3User) // as the processes of the fleet take them
	os.Setenv("AWS_SECRET_ACCESS_KEY", servers.S3Secret)
	s := settings{rate: 25, every: 3 * time.Second, step: 2 * time.Second, progress: 10 * time.Second}
	flag.DurationVar(&s.length, "for", time.Hour, "how `long` to run")
	list := flag.String("store", "directory,etcd", "`stores`, each of which gets a fleet")
	only := flag.String("fault", "", "make only faults whose names match this regular `expression`")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64(), "of the faults")
	path := flag.String("json", "", "write the report to this `file`: faults, clients with their errors and stalls, processes with their sizes")
	flag.Parse()
	for name := range strings.SplitSeq(*list, ",") {
		s.stores = append(s.stores, servers.Kind(name))
	}
	var err error
	if s.only, err = regexp.Compile(*only); err == nil {
		err = s.check(flag.Args())
	}
	fail(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := soak(ctx, s, os.Stdout)
	if err == nil {
		err = report.save(*path)
	}
	fail(errors.Join(err, fleet.Clean()))
	report.print(os.Stdout)
	if len(report.Broken) > 0 {
		os.Exit(1)
	}
}

// fail ends the program if there is an error.
func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
}

func (s settings) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("it takes no argument, got %q", args[0])
	case s.length <= 0:
		return fmt.Errorf("want --for above 0, got %s", s.length)
	}
	for i, name := range s.stores {
		if !slices.Contains(stores, name) || slices.Contains(s.stores[:i], name) {
			return fmt.Errorf("want --store with some of %s; got %s", stores, s.stores)
		}
		if len(fleet.FaultsOn(name, s.only.MatchString)) == 0 {
			return fmt.Errorf("the %s fleet has no fault whose name matches --fault %s", name, s.only)
		}
	}
	return nil
}

// warmUp is the time before the first look at the memory. A short soak takes a tenth of its
// length.
const warmUp = time.Minute

// soak runs the fleets, until ctx ends or the length is over, and prints its progress. The
// error says that it could not run.
func soak(ctx context.Context, s settings, out io.Writer) (_ *Report, err error) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	began := time.Now()
	var fleets []*fleet.Fleet
	var behind *servers.Server // of Kubernetes, and no fault meets it
	defer func() {
		for _, f := range fleets {
			err = errors.Join(err, f.Close(), f.Store.Close())
		}
		if behind != nil {
			err = errors.Join(err, behind.Close())
		}
	}()
	for _, kind := range s.stores {
		var settings []string
		if kind == servers.Kubernetes {
			if behind, err = servers.Start(ctx, servers.Etcd); err != nil {
				return nil, err
			}
			settings = append(settings, "--etcd-servers=http://"+behind.Addr)
		}
		f, err := s.start(ctx, kind, settings...)
		if err != nil {
			return nil, fmt.Errorf("start the %s fleet: %w", kind, err)
		}
		fleets = append(fleets, f)
	}
	fmt.Fprintf(out, "seed %d: %d fleets of %d servers and %d clients, for %s\n", s.seed, len(fleets), serverCount, len(fleets[0].Clients), s.length)

	bounded, cancel := context.WithTimeout(ctx, s.length)
	defer cancel()
	var trouble sync.WaitGroup
	for _, f := range fleets {
		faults := append(fleet.FaultsOn(f.Store.Kind, s.only.MatchString), s.faults...)
		trouble.Go(func() {
			f.Disturb(bounded, fleet.Disturbance{Faults: faults, Every: s.every, Step: s.step, Seed: s.seed})
		})
	}
	start := s.follow(bounded, fleets, out)
	cancel()
	trouble.Wait()
	for _, f := range fleets {
		f.Recovered()
	}
	end := sizes(fleets)
	for _, f := range fleets {
		f.Rest()
	}
	return newReport(s, fleets, start, end, time.Since(began)), nil
}

// start starts a fleet and its store, which has the settings.
func (s settings) start(ctx context.Context, kind servers.Kind, settings ...string) (*fleet.Fleet, error) {
	store, err := servers.Start(ctx, kind, settings...)
	if err != nil {
		return nil, err
	}
	f, err := fleet.StartFleet(ctx, fleet.FleetConfig{Store: store, Servers: serverCount, Networks: true, GoClients: goClients, Rate: s.rate,
		Sequences: map[string][]string{fleet.Ordered: s.ordered},
		Each: func(i int, c *fleet.ServeConfig) {
			c.Clock, c.Raw = true, i == serverCount-1
			if kind != servers.Directory {
				c.Args = []string{"--window", window}
			}
			if s.each != nil {
				s.each(i, c)
			}
		}})
	if err != nil {
		err = errors.Join(err, store.Close())
	}
	return f, err
}

// follow checks the ledgers and prints the progress until ctx ends, or the promise is broken
// that s waits for. It returns the sizes of the processes after the warm-up.
func (s settings) follow(ctx context.Context, fleets []*fleet.Fleet, out io.Writer) (start []fleet.Size) {
	progress := time.NewTicker(s.progress)
	defer progress.Stop()
	warmed := time.After(min(warmUp, s.length/10))
	for {
		select {
		case <-ctx.Done():
			return start
		case <-warmed:
			start = sizes(fleets)
		case now := <-progress.C:
			var texts []string
			over := false
			for _, f := range fleets {
				f.Check()
				texts = append(texts, newFleet(f).String())
				over = over || s.until != "" && strings.Contains(fmt.Sprint(f.Broken()), s.until)
			}
			fmt.Fprintf(out, "%-8s %s\n", fleets[0].Since(now).Round(time.Second), strings.Join(texts, "; "))
			if over {
				return start
			}
		}
	}
}

func (r *Report) save(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

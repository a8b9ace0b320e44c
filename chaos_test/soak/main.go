//go:build linux

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
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/tickflake/tickflake/internal/server"
)

// settings say how to run a soak.
type settings struct {
	length time.Duration
	stores []string
	rate   float64        // calls per second of each client
	every  time.Duration  // the longest pause between two faults, and half of the longest fault
	step   time.Duration  // the largest offset of a clock
	only   *regexp.Regexp // the names of faults
	seed   uint64

	progress time.Duration // between two lines
	mutant   mutant
	until    promise // it ends when this one is broken; empty: never
}

func main() {
	if isChild, err := child(); isChild {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	s := settings{progress: 10 * time.Second}
	flag.DurationVar(&s.length, "for", time.Hour, "how `long` to run")
	list := flag.String("store", onDirectory+","+onEtcd, "`stores`, each of which gets a fleet")
	flag.Float64Var(&s.rate, "rate", 25, "calls per second of each client; a third of them take several IDs or numbers")
	flag.DurationVar(&s.every, "every", 3*time.Second, "the longest pause between two faults of a fleet, and half the longest fault")
	flag.DurationVar(&s.step, "step", 2*time.Second, "how far a clock is stepped from the right time, at most")
	only := flag.String("fault", "", "make only faults whose names match this regular `expression`")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64(), "of the faults")
	path := flag.String("json", "", "write the report to this `file`")
	flag.Parse()
	s.stores = strings.Split(*list, ",")
	var err error
	if s.only, err = regexp.Compile(*only); err == nil {
		err = s.check(flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := soak(ctx, s, os.Stdout)
	if err == nil {
		err = report.save(*path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	report.print(os.Stdout)
	if len(report.Broken) > 0 {
		os.Exit(1)
	}
}

func (s settings) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("it takes no argument, got %q", args[0])
	case s.length <= 0 || s.every <= 0 || s.step < 0:
		return fmt.Errorf("want --for and --every above 0, and --step from 0 on, got %s, %s and %s", s.length, s.every, s.step)
	case s.rate <= 0 || s.rate > 10_000:
		return fmt.Errorf("want a --rate above 0, to 10000, got %g", s.rate)
	}
	seen := map[string]bool{}
	for _, name := range s.stores {
		if name != onDirectory && name != onEtcd || seen[name] {
			return fmt.Errorf("want --store directory, etcd, or directory,etcd; got %s", strings.Join(s.stores, ","))
		}
		if len(s.kinds(name)) == 0 {
			return fmt.Errorf("the %s fleet has no fault whose name matches --fault %s", name, s.only)
		}
		seen[name] = true
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
	logging.Disable()
	dir, err := server.Dir("", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	var fleets []*fleet
	defer func() {
		for _, f := range fleets {
			err = errors.Join(err, f.close())
		}
	}()
	for _, name := range s.stores {
		f, err := startFleet(ctx, s, name, filepath.Join(dir, name), began)
		fleets = append(fleets, f)
		if err != nil {
			return nil, fmt.Errorf("start the %s fleet: %w", name, err)
		}
	}
	fmt.Fprintf(out, "seed %d: %d fleets of %d servers and %d clients, for %s\n", s.seed, len(fleets), serverCount, goClients+1, s.length)

	working, rest := context.WithCancel(context.Background())
	var load, trouble sync.WaitGroup
	stop := sync.OnceFunc(func() { rest(); load.Wait() })
	defer stop()
	bounded, cancel := context.WithTimeout(ctx, s.length)
	defer cancel()
	for _, f := range fleets {
		load.Go(func() { f.work(working) })
		trouble.Go(func() { f.disturb(bounded) })
	}
	start, err := s.follow(bounded, fleets, out)
	cancel()
	trouble.Wait()
	if err != nil {
		return nil, err
	}
	for _, f := range fleets {
		f.recovered()
	}
	end := sizes(fleets)
	stop()
	for _, f := range fleets {
		if err := f.check(); err != nil {
			return nil, err
		}
	}
	return newReport(s, fleets, start, end, time.Since(began)), nil
}

// follow checks the ledgers and prints the progress until ctx ends, or the promise is broken
// that s waits for. It returns the sizes of the processes after the warm-up.
func (s settings) follow(ctx context.Context, fleets []*fleet, out io.Writer) (start []Size, err error) {
	progress := time.NewTicker(s.progress)
	defer progress.Stop()
	warmed := time.After(min(warmUp, s.length/10))
	for {
		select {
		case <-ctx.Done():
			return start, nil
		case <-warmed:
			start = sizes(fleets)
		case <-progress.C:
			var texts []string
			over := false
			for _, f := range fleets {
				if err := f.check(); err != nil {
					return nil, err
				}
				texts = append(texts, f.String())
				over = over || f.times(s.until) > 0
			}
			fmt.Fprintf(out, "%-8s %s\n", fleets[0].since(time.Now()).Round(time.Second), strings.Join(texts, "; "))
			if over {
				return start, nil
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

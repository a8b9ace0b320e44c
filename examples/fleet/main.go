// Command fleet runs three workers on one etcd, kills one of them as a crash would, starts
// another, and stops all of them.
//
// It fails if two living workers had the same node number, or if an ID came twice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/internal/rig/servers"
	_ "github.com/tickflake/tickflake/internal/rig/servers/etcd"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/etcd" // etcd:// in stores.Open
)

func main() {
	worker := flag.String("worker", "", "`path` of the program that is a worker (default: built from ./worker, which takes a clone of the repository, and go)")
	ids := flag.Int("ids", 200, "number of IDs that each worker is to issue before something happens to it")
	timeout := flag.Duration("timeout", 2*time.Minute, "time after which to give up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := run(ctx, *worker, *ids); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, worker string, ids int) (err error) {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if worker == "" {
		if worker, err = buildWorker(ctx, dir); err != nil {
			return err
		}
	}
	// One server; a real fleet has three or more, on machines of their own.
	server, err := servers.Start(ctx, servers.Etcd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	storeURL := server.URL
	fmt.Println("the store is", storeURL)

	f := newFleet(worker, storeURL)
	defer f.killAll()
	if err := f.live(ctx, ids); err != nil {
		return err
	}
	if err := printNodes(ctx, storeURL); err != nil {
		return err
	}
	fmt.Printf("%d IDs by %d processes, none twice\n", len(f.issued), len(f.workers))
	return nil
}

// buildWorker builds the program that is a worker, in dir, and returns its path.
func buildWorker(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "worker")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/tickflake/tickflake/examples/fleet/worker").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build a worker (or say with --worker where one is): %w\n%s", err, out)
	}
	return path, nil
}

// live starts three workers, kills one, starts another, and stops all.
func (f *fleet) live(ctx context.Context, ids int) error {
	for range 3 {
		if err := f.start(); err != nil {
			return err
		}
	}
	if err := f.work(ctx, ids); err != nil {
		return err
	}
	if err := f.kill(ctx, f.workers[1]); err != nil {
		return err
	}
	if err := f.start(); err != nil {
		return err
	}
	if err := f.work(ctx, ids); err != nil {
		return err
	}
	return f.endAll(ctx)
}

// printNodes prints the state of each node number in the store, as the command
// "tickflake lease list" does.
func printNodes(ctx context.Context, storeURL string) (err error) {
	store, err := stores.Open(ctx, storeURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	holdings, err := lease.List(ctx, store)
	for _, h := range holdings {
		fmt.Printf("node %d: %s, limit %s\n", h.Node, h.State, h.Limit.Format(time.RFC3339))
	}
	return err
}

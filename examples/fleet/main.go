// Command fleet runs three workers on one etcd, kills one of them as a crash would, starts
// another, and stops all of them. It fails if an ID came twice.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
	_ "github.com/tickflake/tickflake/integration/servers/etcd"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/etcd" // etcd:// in stores.Open
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, fleet.Clean()) }()
	path, err := fleet.Build("./examples/fleet/worker", false)
	if err != nil {
		return err
	}
	// One server; a real fleet has three or more, on machines of their own.
	server, err := servers.Start(ctx, servers.Etcd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	fmt.Println("the store is", server.URL)

	var issued fleet.Ledger
	var workers []*fleet.Process
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.Kill())
		}
	}()
	start := func(n int) error { // n workers, until each has issued 50 IDs
		enough := make(chan error, n)
		for range n {
			name, ids := fmt.Sprint("worker ", len(workers)+1), 0
			w, err := fleet.Start(ctx, fleet.Config{Path: path, Args: []string{"--store", server.URL}, Quit: syscall.SIGTERM, Line: func(text string) {
				id, err := snowflake.Parse(text)
				issued.Add(name, 0, 0, id.Int64())
				if ids++; ids == 50 || err != nil {
					select {
					case enough <- err:
					default: // a further error
					}
				}
			}})
			if err != nil {
				return err
			}
			workers = append(workers, w)
			fmt.Println(name, "is process", w.PID())
		}
		for range n {
			select {
			case err = <-enough:
			case <-ctx.Done():
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := start(3); err != nil {
		return err
	}
	if err := workers[1].Kill(); err != nil {
		return err
	}
	fmt.Println("worker 2 was killed")
	if err := start(1); err != nil {
		return err
	}
	for _, w := range []*fleet.Process{workers[0], workers[2], workers[3]} {
		if err := w.End(); err != nil {
			return err
		}
	}
	if n, example := issued.Twice(); n > 0 {
		return fmt.Errorf("%d IDs came twice: %s", n, example)
	}
	n, _ := issued.Count()
	fmt.Printf("%d IDs by %d processes, none twice\n", n, len(workers))
	return printNodes(ctx, server.URL)
}

// printNodes prints the state of each node number in the store, as "tickflake lease list" does.
func printNodes(ctx context.Context, url string) error {
	store, err := stores.Open(ctx, url)
	if err != nil {
		return err
	}
	holdings, err := lease.List(ctx, store)
	for _, h := range holdings {
		fmt.Printf("node %d: %s, limit %s\n", h.Node, h.State, h.Limit.Format(time.RFC3339))
	}
	return errors.Join(err, store.Close())
}

// Command worker is one of a fleet: it takes up one piece of work after the other, and
// gives each an ID, which it prints.
//
// Any number of workers can run on any number of machines. All they have in common is
// the etcd, which gives each a node number. A worker that is killed leaves its number
// behind, and the next one takes another; one that gets SIGTERM or an interrupt gives
// it back. If etcd is away for longer than 20 seconds, it waits, and goes on by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/etcd"
	"github.com/tickflake/tickflake/strategies"
)

func main() {
	store := flag.String("store", "etcd://127.0.0.1:2379", "`URL` of the etcd that keeps node numbers")
	every := flag.Duration("every", 10*time.Millisecond, "time that a piece of work takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *store, *every); err != nil {
		slog.Error("worker failed", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, storeURL string, every time.Duration) (err error) {
	claiming, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	store, err := etcd.Open(claiming, storeURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	keeper, err := lease.Claim(claiming, store)
	if err != nil {
		return err
	}
	// Nobody waits for the worker's answer, so it may wait for as long as it takes.
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategies.Wait()))
	if err != nil {
		return errors.Join(err, keeper.Close())
	}
	defer func() { err = errors.Join(err, gen.Close()) }()

	work := time.NewTicker(every)
	defer work.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-work.C:
		}
		id, err := gen.NextContext(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if _, err := fmt.Println(id); err != nil {
			return err
		}
	}
}

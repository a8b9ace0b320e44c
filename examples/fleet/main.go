// Command fleet is one process of a fleet. It gives an ID to each piece of work, and
// prints it.
//
// Any number of processes run on any number of machines. They share an etcd, where each
// claims a node number, or on one machine a directory. A process releases its number on SIGTERM
// or an interrupt. After kill -9 the number rests for a while in etcd, and the next process takes
// another. If etcd is away for more than 20 seconds, a process waits until etcd is back.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/generator"
	_ "github.com/tickflake/tickflake/stores/etcd" // etcd:// in generator.Open
	"github.com/tickflake/tickflake/strategies"
)

func main() {
	store := flag.String("store", "etcd://127.0.0.1:2379", "`URL` of the etcd that keeps node numbers, or a directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *store); err != nil && ctx.Err() == nil {
		log.Fatal("fleet: ", err)
	}
}

func run(ctx context.Context, store string) (err error) {
	opening, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	// No caller waits for a worker's answer, so a worker may wait for an ID without limit.
	gen, err := generator.Open(opening, store, generator.WithStrategy(strategies.Wait()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gen.Close()) }()
	work := time.NewTicker(10 * time.Millisecond)
	for {
		select {
		case <-work.C:
		case <-ctx.Done():
			return nil
		}
		id, err := gen.NextContext(ctx)
		if err != nil {
			return err
		}
		if _, err := fmt.Println(id); err != nil {
			return err
		}
	}
}

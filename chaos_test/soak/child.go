//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
	_ "github.com/tickflake/tickflake/stores/etcd"
	"github.com/tickflake/tickflake/stores/storetest"
)

// childEnv makes this program a server of the service or an etcd: a [job] as JSON.
const childEnv = "TICKFLAKE_SOAK_CHILD"

// job says what a child is.
type job struct {
	Etcd *etcdJob `json:",omitempty"` // if it is an etcd

	Store            string // the URL
	RESP, GRPC, HTTP string // addresses
	Page             string // path
	Raw              bool   // it reads the wall clock without a monoclock
	Mutant           mutant
	Index            int // from 1
}

// etcdJob says how to run etcd.
type etcdJob struct {
	Dir            string
	Clients, Peers string // addresses
}

// mutant is a bug of a server, which the soak must find.
type mutant string

const (
	noMutant     mutant = ""
	sharesNode   mutant = "node"    // all servers have the node number 1
	forgetsLimit mutant = "limit"   // the node number has no lease: a new process does not know how far the last one came
	ownNumbers   mutant = "numbers" // each server has a store of its own for sequences
	segments     mutant = "order"   // the sequence that should be ordered is segmented
	leaks        mutant = "leak"    // each second 100 goroutines do not end
	ends         mutant = "ends"    // it ends after a second
)

// The sequences, which the first call creates.
const (
	ordered   = "ordered"
	segmented = "segmented"
)

// window is the length of a grant of etcd, so short that the store is sometimes away for longer.
const window = 6 * time.Second

// child runs the child that the environment asks for, and reports whether it does.
func child() (isChild bool, err error) {
	text := os.Getenv(childEnv)
	if text == "" {
		return false, nil
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return true, err
	}
	if j.Etcd != nil {
		return true, j.Etcd.serve()
	}
	return true, j.serve()
}

// serve runs etcd as it runs by default, with its syncing to disk.
func (j *etcdJob) serve() error {
	address := func(text string) []url.URL { return []url.URL{{Scheme: "http", Host: text}} }
	config := embed.NewConfig()
	config.Dir = j.Dir
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = address(j.Clients), address(j.Clients)
	config.ListenPeerUrls, config.AdvertisePeerUrls = address(j.Peers), address(j.Peers)
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}

// serve serves as the command "tickflake serve" does, until SIGTERM or until the node number is
// lost.
func (j job) serve() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p, err := openPage(j.Page)
	if err != nil {
		return err
	}
	stepped := steppedClock{p, time.Now()}
	var clock monoclock.Interface = stepped
	if !j.Raw {
		clock = monoclock.New(monoclock.WithSource(stepped))
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	slog.SetDefault(log)
	c := service.Config{Sequences: []sequence.Option{sequence.WithLogger(log)}, Create: j.created(), Logger: log}
	if c.Store, err = stores.Open(ctx, j.Store); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Store.Close()) }()
	keeper, err := j.generator(ctx, &c, clock, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Generator.Close()) }()
	if j.Mutant == ownNumbers {
		c.Store = storetest.NewMemory()
	}
	if c.RESP, err = net.Listen("tcp", j.RESP); err != nil {
		return err
	}
	if c.GRPC, err = net.Listen("tcp", j.GRPC); err != nil {
		return err
	}
	if c.HTTP, err = net.Listen("tcp", j.HTTP); err != nil {
		return err
	}
	s, err := service.New(c)
	if err != nil {
		return err
	}
	bounded, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	go j.watch(p, keeper, lost)
	err = s.Run(bounded)
	if cause := context.Cause(bounded); errors.Is(cause, lease.ErrLost) {
		err = errors.Join(cause, err)
	}
	return err
}

func (j job) created() []service.Create {
	mode := sequence.Ordered
	if j.Mutant == segments {
		mode = sequence.Segmented
	}
	return []service.Create{
		{Prefix: ordered, Definition: sequence.Definition{Mode: mode, Start: 1}},
		{Prefix: segmented, Definition: sequence.Definition{Mode: sequence.Segmented, Start: 1}},
	}
}

// generator makes the generator with a node number of the store. A mutant has no keeper.
func (j job) generator(ctx context.Context, c *service.Config, clock monoclock.Interface, log *slog.Logger) (keeper *lease.Keeper, err error) {
	switch j.Mutant {
	case sharesNode:
		c.Generator, err = generator.New(generator.WithNode(1), generator.WithClock(clock))
		return nil, err
	case forgetsLimit:
		c.Generator, err = generator.New(generator.WithNode(int64(j.Index)), generator.WithClock(clock))
		return nil, err
	}
	options := []lease.Option{lease.WithClock(clock), lease.WithLogger(log)}
	if _, local := c.Store.(stores.Locker); local {
		options = append(options, lease.WithFleetCheck(math.MaxInt64, false))
	} else {
		options = append(options, lease.WithWindow(window))
	}
	if keeper, err = lease.Claim(ctx, c.Store, options...); err != nil {
		return nil, err
	}
	if c.Generator, err = generator.New(generator.WithLease(keeper)); err != nil {
		return nil, errors.Join(err, keeper.Close())
	}
	return keeper, nil
}

// watch counts goroutines for the soak, and ends the server when its node number is lost. It
// runs until the process ends.
func (j job) watch(p *page, keeper *lease.Keeper, lost context.CancelCauseFunc) {
	for n := 0; ; n++ {
		p.goroutines.Store(int64(runtime.NumGoroutine()))
		if keeper != nil && errors.Is(keeper.Err(), lease.ErrLost) {
			lost(fmt.Errorf("the node number is lost: %w", keeper.Err()))
		}
		switch {
		case j.Mutant == leaks:
			for range 100 {
				go func() { select {} }()
			}
		case j.Mutant == ends && n == 1:
			os.Exit(0)
		}
		<-time.After(time.Second)
	}
}

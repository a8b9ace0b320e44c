// Command httpservice answers HTTP requests with IDs.
//
//	POST /id                  {"id":"283563419238400000"}
//	POST /ids  {"count":2}    {"ids":["283563419238400001","283563419238400002"]}
//	GET  /readyz              200 if it can issue IDs, 503 if not
//	GET  /livez               503 if only a restart can help, or else 200
//
// The method is POST, because a proxy may cache the answer to a GET and give it to two
// callers. IDs are strings, because JavaScript rounds large numbers.
//
// The store of node numbers is the URL --store: a directory for any number of processes on
// one host, or etcd:// or etcds:// as package stores/etcd documents them. A URL with a
// password goes into $TICKFLAKE_STORE, because every user of a host can read the command
// lines of its processes.
//
// On SIGTERM or an interrupt the service accepts no new requests, completes those it has,
// releases its node number, and exits with 0.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/generator"
	_ "github.com/tickflake/tickflake/stores/etcd" // etcd:// in generator.Open
	"github.com/tickflake/tickflake/strategies"
)

type settings struct {
	listen         string
	store          string
	node           string
	owner          string
	strategy       string
	window         time.Duration
	claimTimeout   time.Duration
	requestTimeout time.Duration
	grace          time.Duration
	batchLimit     int
}

func main() {
	var s settings
	flag.StringVar(&s.listen, "listen", "127.0.0.1:8080", "`address` to serve on")
	flag.StringVar(&s.store, "store", "", "`URL` of the store of node numbers: a directory, etcd://HOST:PORT or etcds://HOST:PORT (default $TICKFLAKE_STORE)")
	flag.StringVar(&s.node, "node", "any", "node `number`, or any, or statefulset: the ordinal at the end of the host name")
	flag.StringVar(&s.owner, "owner", "", "`name` of the holder of the node number, for people who look (default host name and process id)")
	flag.StringVar(&s.strategy, "strategy", "default", "`strategy` for IDs that lie ahead of the clock, such as borrow:30s,wait:1s")
	flag.DurationVar(&s.window, "window", 0, "length of a grant; the store may be away for two thirds of it (default 30s, in a directory 3s)")
	flag.DurationVar(&s.claimTimeout, "claim-timeout", 30*time.Second, "time to wait for the store and a node number at start")
	flag.DurationVar(&s.requestTimeout, "request-timeout", 2*time.Second, "time that a request may wait for its IDs")
	flag.DurationVar(&s.grace, "grace", 15*time.Second, fmt.Sprintf("time that requests have to end after SIGTERM; releasing the node number has %s more", releaseTimeout))
	flag.IntVar(&s.batchLimit, "batch-limit", 1000, "most IDs in one answer")
	flag.Parse()
	if s.store == "" {
		s.store = os.Getenv("TICKFLAKE_STORE")
	}
	if flag.NArg() > 0 || s.batchLimit < 1 {
		fmt.Fprintln(os.Stderr, "httpservice: want no arguments but flags, and a batch limit of 1 or more")
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once, but not one to its group, with the first.
	context.AfterFunc(ctx, func() { time.AfterFunc(100*time.Millisecond, stop) })
	if err := run(ctx, s); err != nil {
		slog.Error("httpservice failed", "err", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, s settings) (err error) {
	strategy, err := strategies.Parse(s.strategy)
	if err != nil {
		return fmt.Errorf("--strategy: %w", err)
	}
	options, err := leaseOptions(s)
	if err != nil {
		return err
	}
	opening, cancel := context.WithTimeout(ctx, s.claimTimeout)
	defer cancel()
	gen, err := generator.Open(opening, s.store, generator.WithStrategy(strategy), generator.WithLeaseOptions(options...))
	if err != nil {
		return err
	}
	// The node number is released last, when no request needs it.
	defer func() {
		release, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		err = errors.Join(err, gen.CloseContext(release))
	}()

	return serve(ctx, s, &service{gen: gen, batchLimit: s.batchLimit, timeout: s.requestTimeout})
}

// releaseTimeout bounds the release of the node number. A number that is not released
// rests for up to two windows before another process can claim it.
const releaseTimeout = 5 * time.Second

// readTimeout bounds the arrival of a request and its body.
const readTimeout = 10 * time.Second

// serve answers requests until ctx ends, and then completes those in flight.
func serve(ctx context.Context, s settings, service *service) error {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           service.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readTimeout,
		// Without a limit, a client that never reads its answers would keep its
		// connection, and the shutdown would wait for it.
		WriteTimeout:   s.requestTimeout + readTimeout,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 16 << 10, // no request here needs more
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	slog.Info("serving", "address", listener.Addr().String(), "node", service.gen.Node())

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	slog.Info("shutting down", "grace", s.grace)
	ending, cancel := context.WithTimeout(context.Background(), s.grace)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		err = fmt.Errorf("requests did not end within %s and were cut off: %w", s.grace, err)
		return errors.Join(err, server.Close())
	}
	return nil
}

// Command httpservice answers HTTP requests with IDs.
//
//	POST /id      {"id":"283563419238400000"}
//	GET  /readyz  200 if it can issue IDs, or else 503
//	GET  /livez   503 if only a restart helps, or else 200
//
// The method is POST, because a proxy may cache the answer to a GET and give it to two
// callers. The ID is a string, because JavaScript rounds large numbers.
//
// On SIGTERM or an interrupt the service accepts no new requests, completes those it has,
// releases its node number, and exits with 0.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	_ "github.com/tickflake/tickflake/stores/etcd" // etcd:// in generator.Open
	"github.com/tickflake/tickflake/strategies"
)

const (
	claimTimeout   = 30 * time.Second // for the store and a node number at the start
	requestTimeout = 2 * time.Second  // for the ID of a request
	grace          = 20 * time.Second // for requests to end after SIGTERM
	releaseTimeout = 5 * time.Second  // a number that is not released rests for up to two windows
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to serve on")
	// A URL with a password belongs in the environment: every user of a host can read command lines.
	store := flag.String("store", "", "`URL` of the store of node numbers: a directory, or etcd://HOST:PORT (default $TICKFLAKE_STORE)")
	node := flag.Int64("node", -1, "node `number`, or -1 for any that is free")
	strategy := flag.String("strategy", "default", "`strategy` for IDs that lie ahead of the clock, such as borrow:30s,wait:1s")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, cmp.Or(*store, os.Getenv("TICKFLAKE_STORE")), *node, *strategy); err != nil {
		slog.Error("httpservice failed", "err", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, listen, store string, node int64, text string) (err error) {
	strategy, err := strategies.Parse(text)
	if err != nil {
		return err
	}
	options := []generator.Option{generator.WithStrategy(strategy)}
	if node >= 0 {
		options = append(options, generator.WithNode(node))
	}
	opening, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	gen, err := generator.Open(opening, store, options...)
	if err != nil {
		return err
	}
	defer func() { // last, when no request needs the node number
		release, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		err = errors.Join(err, gen.CloseContext(release))
	}()

	s := &service{gen}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /id", s.id)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /livez", s.live)
	server := &http.Server{Addr: listen, Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return server.Shutdown(ending)
}

// service answers requests. It is safe for concurrent use, as a generator is.
type service struct{ gen *generator.Generator }

func (s *service) id(w http.ResponseWriter, r *http.Request) {
	// The context also ends the wait when the client hangs up.
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	id, err := s.gen.NextContext(ctx)
	var lead *generator.LeadError
	switch after := time.Second; {
	case err == nil:
		reply(w, http.StatusOK, map[string]snowflake.ID{"id": id})
	case errors.Is(err, lease.ErrEndOfTime):
		reply(w, http.StatusInternalServerError, map[string]string{"error": "the layout has no more IDs"})
	default: // the log has the error, which may name servers
		slog.Warn("no ID", "err", err)
		if errors.As(err, &lead) { // too many requests at once, or the clock is behind
			after = max(after, lead.Lead-lead.Limit)
		}
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
		reply(w, http.StatusServiceUnavailable, map[string]string{"error": "no ID now, try again"})
	}
}

// ready tells a load balancer whether the service can issue IDs. It can while the grant lasts,
// also while the store is away. It cannot yet if it took over the number of a process that
// crashed: the next ID must come after that process's grant, up to a window ahead of the clock.
func (s *service) ready(w http.ResponseWriter, _ *http.Request) {
	stats, status := s.gen.Stats(), http.StatusOK
	if s.gen.Ready(requestTimeout) != nil {
		status = http.StatusServiceUnavailable
	}
	reply(w, status, map[string]any{"node": s.gen.Node(), "granted": stats.Remaining.String(), "lead": stats.Lead.String()})
}

// live fails if only a restart helps, as when another process took over the number of --node, and the
// grant is used up. It succeeds while the store is away: a new process could not start either.
func (s *service) live(w http.ResponseWriter, _ *http.Request) {
	status := http.StatusOK
	if s.gen.Err() != nil {
		status = http.StatusServiceUnavailable
	}
	reply(w, status, map[string]bool{"live": status == http.StatusOK})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // an error: the client hung up
}

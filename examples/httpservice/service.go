package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
)

// service answers requests. It is safe for concurrent use, as a generator is.
type service struct {
	gen        *generator.Generator
	batchLimit int
	timeout    time.Duration // for the IDs of a request
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /id", s.one)
	mux.HandleFunc("POST /ids", s.batch)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /livez", s.live)
	return mux
}

func (s *service) one(w http.ResponseWriter, r *http.Request) {
	// The context also ends the wait when the client hangs up.
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	id, err := s.gen.NextContext(ctx)
	if err != nil {
		refuse(w, r, err)
		return
	}
	reply(w, http.StatusOK, struct {
		ID snowflake.ID `json:"id"`
	}{id})
}

func (s *service) batch(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Count int `json:"count"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1024)).Decode(&ask)
	if err == nil && (ask.Count < 1 || ask.Count > s.batchLimit) {
		err = fmt.Errorf("%w: count is %d", errBadCount, ask.Count)
	}
	if err != nil {
		problem(w, http.StatusBadRequest, fmt.Sprintf(`want {"count":N} with N from 1 to %d: %s`, s.batchLimit, complaint(err)))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	ids := make([]snowflake.ID, ask.Count)
	// All or none: the IDs of an incomplete batch are dropped.
	if _, err := s.gen.NextNContext(ctx, ids); err != nil {
		refuse(w, r, err)
		return
	}
	reply(w, http.StatusOK, struct {
		IDs []snowflake.ID `json:"ids"`
	}{ids})
}

var errBadCount = errors.New("out of range")

// complaint returns the error of a request's body for the client. It quotes only errors of
// the content: an error of the connection contains addresses.
func complaint(err error) string {
	var (
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
		long   *http.MaxBytesError
	)
	if errors.Is(err, errBadCount) || errors.As(err, &syntax) || errors.As(err, &kind) || errors.As(err, &long) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err.Error()
	}
	slog.Info("request incomplete", "err", err)
	return "the body did not arrive"
}

// ready tells a load balancer whether the service can issue IDs: as long as the grant lasts, even
// while the store is away.
func (s *service) ready(w http.ResponseWriter, _ *http.Request) {
	stats, ready, status := s.gen.Stats(), s.gen.Ready(s.timeout) == nil, http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	reply(w, status, struct {
		Ready   bool   `json:"ready"`
		Node    int64  `json:"node"`
		Granted string `json:"granted"` // how long it can go on without the store
		Lead    string `json:"lead"`    // how far the next ID is ahead of the clock
	}{ready, s.gen.Node(), stats.Granted.Round(time.Millisecond).String(), stats.Lead.Round(time.Millisecond).String()})
}

// live fails if only a restart helps: another process took over the node number that
// --node pins, and the grant is used up. It succeeds while the store is away, because the
// service recovers by itself, and a new process could not claim a number.
func (s *service) live(w http.ResponseWriter, _ *http.Request) {
	if err := s.gen.Keeper().Err(); errors.Is(err, lease.ErrLost) && s.gen.Stats().Granted <= 0 {
		slog.Error("restart needed", "err", err)
		problem(w, http.StatusServiceUnavailable, "the lease is lost for good")
		return
	}
	reply(w, http.StatusOK, struct {
		Live bool `json:"live"`
	}{true})
}

// refuse answers that there is no ID, and why, unless the client hung up.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		slog.Info("client hung up", "err", err)
		return
	}
	status, after, message := explain(err)
	if status == http.StatusInternalServerError {
		slog.Error("no ID", "err", err)
	}
	if after > 0 {
		seconds := math.Ceil(after.Seconds())
		w.Header().Set("Retry-After", strconv.FormatFloat(seconds, 'f', 0, 64))
	}
	problem(w, status, message)
}

// explain returns the answer to a request for which the generator returned err, and when
// to retry, or 0 for never. The text goes to clients, so it does not quote errors of the
// store, which contain addresses of servers.
func explain(err error) (status int, after time.Duration, message string) {
	var lead *generator.LeadError
	switch {
	case errors.As(err, &lead): // too many at once, or the clock is behind
		return http.StatusServiceUnavailable, max(lead.Lead-lead.Limit, time.Second), lead.Error()
	case errors.Is(err, generator.ErrNotGranted): // the lease asks the store once a second
		return http.StatusServiceUnavailable, time.Second, "the store of node numbers has granted no time"
	case errors.Is(err, generator.ErrClosed): // shutting down; another replica goes on
		return http.StatusServiceUnavailable, time.Second, "shutting down"
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, time.Second, "no ID in time"
	}
	return http.StatusInternalServerError, 0, "cannot issue IDs" // such as the end of the layout's time
}

func problem(w http.ResponseWriter, status int, message string) {
	reply(w, status, struct {
		Error string `json:"error"`
	}{message})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		slog.Info("client hung up", "err", err)
	}
}

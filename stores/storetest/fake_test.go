package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// namespaces are Memories by name.
type namespaces struct {
	mu   sync.Mutex
	used map[string]*storetest.Memory
}

func (n *namespaces) open(_ testing.TB, name string) stores.Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.used == nil {
		n.used = make(map[string]*storetest.Memory)
	}
	if n.used[name] == nil {
		n.used[name] = storetest.NewMemory()
	}
	return n.used[name].Client()
}

// fakeServer serves Memories over HTTP, one request for an operation.
type fakeServer struct {
	how     string // what is wrong: it is "careless" with damaged cells, "blind" for versions, or "forgets" when it is killed
	addr    string
	data    namespaces
	server  *http.Server
	stopped sync.Mutex      // held while it is suspended
	damaged map[string]bool // by namespace and key
}

type request struct {
	Namespace, Op, Key, From, To string
	Limit                        int
	Version                      uint64
	Value                        []byte
}

type response struct {
	Cells             []stores.Cell
	Damaged, Conflict bool
}

func newFakeServer(t *testing.T, how string) *fakeServer {
	s := &fakeServer{how: how, addr: "127.0.0.1:0", damaged: make(map[string]bool)}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.kill() })
	return s
}

func (s *fakeServer) start() error {
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	s.addr, s.server = listener.Addr().String(), &http.Server{Handler: s} //nolint:gosec // a test
	go s.server.Serve(listener)                                           //nolint:errcheck // kill ends it
	return nil
}

func (s *fakeServer) kill() error {
	err := s.server.Close()
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if s.how == "forgets" {
		s.data.used = nil
	}
	return err
}

func (s *fakeServer) suspend() error { s.stopped.Lock(); return nil }
func (s *fakeServer) resume() error  { s.stopped.Unlock(); return nil }

func (s *fakeServer) damage(_ testing.TB, namespace, key, _ string) {
	s.stopped.Lock()
	defer s.stopped.Unlock()
	s.damaged[namespace+" "+key] = true
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q request
	if json.NewDecoder(r.Body).Decode(&q) != nil {
		return
	}
	text, _ := json.Marshal(s.answer(q))
	_, _ = w.Write(text)
}

func (s *fakeServer) answer(q request) response {
	s.stopped.Lock()
	defer s.stopped.Unlock()
	cells := s.data.open(nil, q.Namespace).(*storetest.Memory)
	ctx := context.Background()
	damaged := func(key string) bool { return s.damaged[q.Namespace+" "+key] }
	switch {
	case q.Op == "list":
		list, _ := cells.List(ctx, q.From, q.To, math.MaxInt)
		good := slices.DeleteFunc(slices.Clone(list), func(cell stores.Cell) bool { return damaged(cell.Key) })
		return response{Cells: good[:min(len(good), q.Limit)], Damaged: len(good) < len(list)}
	case damaged(q.Key) && (q.Op == "read" || s.how != "careless"):
		return response{Damaged: true}
	case q.Op == "read":
		return response{Cells: []stores.Cell{cells.Peek(q.Key)}}
	}
	if s.how == "blind" && q.Version != 0 {
		q.Version = cells.Peek(q.Key).Version
	}
	version, err := cells.Swap(ctx, q.Key, q.Version, q.Value)
	return response{Cells: []stores.Cell{{Key: q.Key, Version: version}}, Conflict: err != nil}
}

// leftOpen keeps connections from being closed by the garbage collector.
var leftOpen sync.Map

// fakeClient is a Store on a fakeServer. Its faults are those that real ones have had.
type fakeClient struct {
	addr, namespace string

	// how is what is wrong: it "retries" a write that has no answer, is "hasty" and does so again and again without a pause,
	// "patient" and waits nearly as long as it takes, "hopeful" and takes no answer for a good one, "stuck" on a connection that
	// is dead; at Close it "dwells" on an answer, has "left" a connection open, or "runs" a goroutine. It is "unlucky", once, if it
	// fails for its own reason just before its context ends, which is nothing wrong.
	how string

	used  http.Transport
	dead  atomic.Bool
	spent atomic.Bool // its bad luck
}

func (c *fakeClient) call(ctx context.Context, q request) ([]stores.Cell, error) {
	a, err := c.once(ctx, q)
	for again := map[string]int{"retries": 1, "hasty": 1000}[c.how]; err != nil && ctx.Err() == nil && again > 0; again-- {
		a, err = c.once(ctx, q)
	}
	switch {
	case err != nil && c.how == "stuck":
		c.dead.Store(true)
		return nil, err
	case err != nil && ctx.Err() != nil && c.how == "unlucky" && !c.spent.Swap(true):
		return nil, errors.New("invalid connection")
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
	case err != nil:
		return nil, err
	case a.Damaged:
		return a.Cells, &stores.DamagedError{Key: q.Key + q.From}
	case a.Conflict:
		return nil, stores.ErrConflict
	}
	return a.Cells, nil
}

func (c *fakeClient) once(ctx context.Context, q request) (a response, err error) {
	if err := ctx.Err(); err != nil || c.dead.Load() {
		return a, errors.Join(err, net.ErrClosed)
	}
	if c.how == "patient" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 8*time.Second)
		defer cancel()
	}
	q.Namespace = c.namespace
	text, _ := json.Marshal(q)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.addr, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	answer, err := (&http.Client{Transport: &c.used}).Do(r)
	if err != nil && c.how == "hopeful" && q.Op == "swap" {
		return response{Cells: []stores.Cell{{Key: q.Key, Version: q.Version + 1}}}, nil
	}
	if err != nil {
		return a, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if text, err = io.ReadAll(answer.Body); err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

func (c *fakeClient) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	return c.call(ctx, request{Op: "list", From: from, To: to, Limit: limit})
}

func (c *fakeClient) Read(ctx context.Context, key string) (stores.Cell, error) {
	return c.first(ctx, request{Op: "read", Key: key})
}

func (c *fakeClient) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	cell, err := c.first(ctx, request{Op: "swap", Key: key, Version: version, Value: value})
	return cell.Version, err
}

func (c *fakeClient) first(ctx context.Context, q request) (stores.Cell, error) {
	cells, err := c.call(ctx, q)
	return append(cells, stores.Cell{})[0], err
}

func (*fakeClient) Traits() stores.Traits { return stores.Traits{} }

func (c *fakeClient) Close() error {
	switch c.how {
	case "dwells":
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		_, _ = c.once(ctx, request{Op: "read"})
	case "runs":
		go func() { select {} }()
	case "left":
		conn, _ := net.Dial("tcp", c.addr)
		leftOpen.Store(conn, true)
	}
	c.used.CloseIdleConnections()
	return nil
}

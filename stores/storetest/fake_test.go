package storetest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// fakeServer serves Memories over TCP, one line of JSON each way for an operation.
type fakeServer struct {
	addr     string
	blind    bool // looks at no version
	careless bool // overwrites damaged cells
	forgets  bool // what it has acknowledged is lost when it is killed
	mu       sync.Mutex
	data     *namespaces
	listener net.Listener
	conns    map[net.Conn]bool
	running  sync.WaitGroup
	stopped  sync.Mutex      // held while it is suspended
	damaged  map[string]bool // by namespace and key
}

func (s *fakeServer) damage(_ testing.TB, namespace, key, _ string) {
	s.stopped.Lock()
	defer s.stopped.Unlock()
	s.damaged[namespace+" "+key] = true
}

func (s *fakeServer) suspend() error { s.stopped.Lock(); return nil }
func (s *fakeServer) resume() error  { s.stopped.Unlock(); return nil }

type request struct {
	Namespace, Op string
	Key           string
	From, To      string
	Limit         int
	Version       uint64
	Value         []byte
}

type response struct {
	Cells   []stores.Cell
	Damaged bool
	Error   string
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{addr: "127.0.0.1:0", data: new(namespaces), damaged: make(map[string]bool)}
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
	s.listener, s.addr = listener, listener.Addr().String()
	s.conns = make(map[net.Conn]bool)
	s.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[conn] = true
			s.mu.Unlock()
			s.running.Go(func() { s.serve(conn) })
		}
	})
	return nil
}

func (s *fakeServer) kill() error {
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	if s.forgets {
		s.data = new(namespaces)
	}
	return nil
}

func (s *fakeServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var q request
		if json.Unmarshal(lines.Bytes(), &q) != nil {
			return
		}
		answer, _ := json.Marshal(s.answer(q))
		if _, err := conn.Write(append(answer, '\n')); err != nil {
			return
		}
	}
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
	case damaged(q.Key) && (q.Op == "read" || !s.careless):
		return response{Damaged: true}
	case q.Op == "read":
		return response{Cells: []stores.Cell{cells.Peek(q.Key)}}
	}
	if s.blind && q.Version != 0 {
		q.Version = cells.Peek(q.Key).Version
	}
	version, err := cells.Swap(ctx, q.Key, q.Version, q.Value)
	if err != nil {
		return response{Error: err.Error()}
	}
	return response{Cells: []stores.Cell{{Key: q.Key, Version: version}}}
}

// leftOpen keeps connections from being closed by the garbage collector.
var leftOpen sync.Map

// fakeClient is a Store on a fakeServer. Its faults are those that real ones have had.
type fakeClient struct {
	addr, namespace string

	retries bool // sends a write again if it has no answer
	patient bool // waits for an answer for as long as it takes, nearly
	stuck   bool // keeps a connection that is dead
	hopeful bool // takes no answer for a good one
	left    bool // leaves its connection open at Close
	runs    bool // leaves a goroutine at Close
	dwells  bool // waits for an answer at Close
	hasty   bool // sends a request again and again, without a pause
	unlucky bool // fails for its own reason just before its context ends, the first time

	mu    sync.Mutex
	conn  net.Conn
	lines *bufio.Reader
}

func (c *fakeClient) call(ctx context.Context, q request) ([]stores.Cell, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q.Namespace = c.namespace
	a, err := c.once(ctx, q)
	if err != nil && c.retries && ctx.Err() == nil {
		a, err = c.once(ctx, q)
	}
	for i := 0; c.hasty && err != nil && i < 1000; i++ {
		a, err = c.once(ctx, q)
	}
	switch {
	case err != nil && ctx.Err() != nil && c.unlucky:
		c.unlucky = false
		return nil, errors.New("invalid connection")
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
	case err != nil:
		return nil, err
	case a.Damaged:
		return a.Cells, &stores.DamagedError{Key: q.Key + q.From}
	case a.Error != "":
		return nil, fmt.Errorf("%s: %w", a.Error, stores.ErrConflict)
	}
	return a.Cells, nil
}

func (c *fakeClient) once(ctx context.Context, q request) (a response, err error) {
	if err := ctx.Err(); err != nil {
		return a, err
	}
	if c.conn == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.addr)
		if err != nil {
			return a, err
		}
		c.conn, c.lines = conn, bufio.NewReader(conn)
	}
	conn := c.conn
	defer func() {
		if err != nil && !c.stuck {
			_ = conn.Close()
			c.conn = nil
		}
	}()
	_ = conn.SetDeadline(time.Time{})
	if c.patient {
		ctx = context.Background()
		_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	b, _ := json.Marshal(q)
	if _, err := conn.Write(append(b, '\n')); err != nil {
		return a, err
	}
	line, err := c.lines.ReadBytes('\n')
	if err != nil && c.hopeful && q.Op == "swap" {
		return response{Cells: []stores.Cell{{Key: q.Key, Version: q.Version + 1}}}, nil
	}
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(line, &a)
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

func (*fakeClient) Traits() stores.Traits { return stores.Traits{} }

func (c *fakeClient) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && c.dwells {
		_, _ = c.conn.Write([]byte("{}\n"))
		_ = c.conn.SetDeadline(time.Now().Add(8 * time.Second))
		_, _ = c.lines.ReadBytes('\n')
	}
	if c.runs {
		go func() { select {} }()
	}
	if c.conn != nil && c.left {
		leftOpen.Store(c.conn, true)
	} else if c.conn != nil {
		_ = c.conn.Close()
	}
	return nil
}

func (c *fakeClient) first(ctx context.Context, q request) (stores.Cell, error) {
	cells, err := c.call(ctx, q)
	if err != nil {
		return stores.Cell{}, err
	}
	if len(cells) != 1 {
		return stores.Cell{}, errors.New("not one cell")
	}
	return cells[0], nil
}

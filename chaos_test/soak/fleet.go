//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/stores/storetest"
)

const (
	serverCount = 3
	goClients   = 3
	goCallers   = 2 // goroutines of a Go client
)

// member is one server of a fleet.
type member struct {
	job
	page    *page
	process *server.Process
	clients []*storetest.Proxy // between clients and the server: RESP, gRPC
	store   *storetest.Proxy   // between the server and etcd, or nil
}

// alive reports whether the process has not ended by itself.
func (m *member) alive() bool { return syscall.Kill(m.process.PID(), 0) == nil }

// fleet is three servers of one store and their four clients.
type fleet struct {
	settings
	name    string // of the store
	began   time.Time
	members []*member
	etcd    *server.Process // or nil
	workers []*worker
	closers []func() error
	ids     *ledger
	numbers map[string]*ledger

	top atomic.Int64 // the largest number of the ordered sequence that a call has returned

	mu     sync.Mutex       // of all below
	faults map[string]int64 // how often, by kind
	broken map[promise]*Broken
}

// promise is one that can be broken.
type promise string

const (
	unique  promise = "no ID or number comes twice"
	inOrder promise = "IDs and ordered numbers are in order"
	known   promise = "calls fail only because no server serves them now"
	ending  promise = "every call returns"
	lives   promise = "no server ends by itself"
	returns promise = "servers serve again after a fault"
	bounded promise = "no process grows"
)

// Broken is a promise that does not hold.
type Broken struct {
	Promise  string   `json:"promise"`
	Count    int64    `json:"count"`
	Examples []string `json:"examples"` // the first ones
}

// since is the time from the start of the soak.
func (f *fleet) since(t time.Time) time.Duration { return t.Sub(f.began) }

func (f *fleet) raise(number int64) {
	for {
		if top := f.top.Load(); number <= top || f.top.CompareAndSwap(top, number) {
			return
		}
	}
}

// breaks notes that a promise is broken.
func (f *fleet) breaks(p promise, times int64, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.broken[p]
	if b == nil {
		b = &Broken{Promise: string(p)}
		f.broken[p] = b
	}
	b.Count += times
	if len(b.Examples) < mostShown {
		b.Examples = append(b.Examples, fmt.Sprintf("%s: %s fleet: ", f.since(time.Now()).Round(time.Millisecond), f.name)+fmt.Sprintf(format, args...))
	}
}

// times is how often a promise was broken.
func (f *fleet) times(p promise) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.broken[p]; b != nil {
		return b.Count
	}
	return 0
}

// The stores of fleets.
const (
	onDirectory = "directory"
	onEtcd      = "etcd"
)

// startFleet starts a fleet with its data in dir, and returns when all its servers are ready.
// Close it also after an error.
func startFleet(ctx context.Context, s settings, name, dir string, began time.Time) (*fleet, error) {
	f := &fleet{settings: s, name: name, began: began, faults: map[string]int64{}, broken: map[promise]*Broken{}, numbers: map[string]*ledger{}}
	var err error
	if err = os.Mkdir(dir, 0o700); err != nil {
		return f, err
	}
	if f.ids, err = newLedger(filepath.Join(dir, "ids"), idShift); err != nil {
		return f, err
	}
	for _, sequence := range []string{ordered, segmented} {
		if f.numbers[sequence], err = newLedger(filepath.Join(dir, sequence), numberShift); err != nil {
			return f, err
		}
	}
	etcd := ""
	if name == onEtcd {
		if etcd, err = f.startEtcd(ctx, dir); err != nil {
			return f, err
		}
	}
	for i := range serverCount {
		if err := f.startMember(ctx, i, dir, etcd); err != nil {
			return f, err
		}
	}
	return f, f.openClients(ctx)
}

// address returns a free one.
func address() (string, error) {
	port, err := server.Port()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// startChild starts this program with a job.
func startChild(ctx context.Context, j job, ready func(context.Context) error) (*server.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return server.Start(ctx, server.Config{Path: self, Env: []string{childEnv + "=" + string(text)}, Quit: syscall.SIGTERM, Ready: ready})
}

func (f *fleet) startEtcd(ctx context.Context, dir string) (addr string, err error) {
	j := etcdJob{Dir: filepath.Join(dir, "etcd")}
	if j.Clients, err = address(); err != nil {
		return "", err
	}
	if j.Peers, err = address(); err != nil {
		return "", err
	}
	f.etcd, err = startChild(ctx, job{Etcd: &j}, answers("http://"+j.Clients+"/health"))
	if err == nil {
		f.closers = append(f.closers, f.etcd.Stop)
	}
	return j.Clients, err
}

// answers returns a function that asks for the page at the URL, and fails unless the answer is
// 200.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		request.Close = true // keeps no connection
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", answer.Status, text)
		}
		return errors.Join(err, answer.Body.Close())
	}
}

func (f *fleet) startMember(ctx context.Context, i int, dir, etcd string) (err error) {
	m := &member{job: job{Store: filepath.Join(dir, "store"), Index: i + 1, Raw: i == serverCount-1, Mutant: f.mutant,
		Page: filepath.Join(dir, fmt.Sprintf("page%d", i))}}
	for _, a := range []*string{&m.RESP, &m.GRPC, &m.HTTP} {
		if *a, err = address(); err != nil {
			return err
		}
	}
	proxy := func(addr string) (*storetest.Proxy, error) {
		p, err := storetest.StartProxy(addr)
		if err == nil {
			f.closers = append(f.closers, func() error { p.Close(); return nil })
		}
		return p, err
	}
	if etcd != "" {
		if m.store, err = proxy(etcd); err != nil {
			return err
		}
		m.Store = "etcd://" + m.store.Addr()
	}
	for _, a := range []string{m.RESP, m.GRPC} {
		p, err := proxy(a)
		if err != nil {
			return err
		}
		m.clients = append(m.clients, p)
	}
	if m.page, err = openPage(m.Page); err != nil {
		return err
	}
	if m.process, err = startChild(ctx, m.job, answers("http://"+m.HTTP+"/readyz")); err != nil {
		return err
	}
	f.closers = append(f.closers, m.process.Stop)
	f.members = append(f.members, m)
	return nil
}

func (f *fleet) openClients(ctx context.Context) error {
	var resp, grpc []string
	for _, m := range f.members {
		resp, grpc = append(resp, m.clients[0].Addr()), append(grpc, m.clients[1].Addr())
	}
	for i := range goClients {
		c, err := client.Open(ctx, grpc, client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return err
		}
		f.addWorker(fmt.Sprintf("Go client %d", i+1), goClient{c})
	}
	f.addWorker("go-redis", openRedis(resp))
	return nil
}

func (f *fleet) addWorker(name string, c caller) {
	f.closers = append(f.closers, c.Close)
	f.workers = append(f.workers, &worker{caller: c, number: len(f.workers) + 1, name: name, fleet: f,
		count: Client{Name: name, Errors: map[string]int64{}, Examples: map[string]string{}, Stalls: map[string]Stall{}}})
}

// work loads the servers until ctx ends.
func (f *fleet) work(ctx context.Context) {
	var all sync.WaitGroup
	for _, w := range f.workers {
		callers := goCallers
		if _, one := w.caller.(*redisClient); one {
			callers = 1
		}
		for range callers {
			all.Go(func() { w.run(ctx, time.Duration(float64(callers)*float64(time.Second)/f.rate)) })
		}
	}
	<-ctx.Done()
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(callTimeout + time.Minute): // the machine may be busy
		f.breaks(ending, 1, "a call has not returned a minute after its deadline")
	}
}

// check looks for values that came twice since the last time.
func (f *fleet) check() error {
	for name, l := range map[string]*ledger{"ID": f.ids, "number of the ordered sequence": f.numbers[ordered], "number of the segmented sequence": f.numbers[segmented]} {
		twice, example, err := l.check()
		if err != nil {
			return err
		}
		if twice > 0 {
			f.breaks(unique, twice, "%s %s", name, example)
		}
	}
	return nil
}

// recovered fails unless each server serves IDs and both sequences within a minute.
func (f *fleet) recovered() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, m := range f.members {
		c := openRedis([]string{m.clients[0].Addr()})
		for _, ask := range []func(context.Context) error{
			func(ctx context.Context) error {
				ids, _, err := c.ids(ctx, 1)
				f.ids.add(0, f.since(time.Now()), ids...)
				return err
			},
			func(ctx context.Context) error { return f.one(ctx, c, ordered) },
			func(ctx context.Context) error { return f.one(ctx, c, segmented) },
		} {
			var err error
			for err = ask(ctx); err != nil && ctx.Err() == nil && m.alive(); err = ask(ctx) {
				<-time.After(redisPause)
			}
			if !m.alive() {
				f.ended(m)
				break
			}
			if err != nil {
				f.breaks(returns, 1, "server %d does not serve after the last fault: %v", m.Index, err)
			}
		}
		_ = c.Close() // it has been read
	}
}

func (f *fleet) one(ctx context.Context, c *redisClient, name string) error {
	n, err := c.numbers(ctx, name, 1)
	if err == nil {
		f.numbers[name].add(0, f.since(time.Now()), n)
	}
	return err
}

// close ends the clients, the servers and the store, in this order.
func (f *fleet) close() error {
	var errs []error
	for i := len(f.closers) - 1; i >= 0; i-- {
		errs = append(errs, f.closers[i]())
	}
	return errors.Join(errs...)
}

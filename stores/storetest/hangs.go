package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
)

const (
	// hangTime is the time of each call of testHangs. A call that hangs never returns, so the
	// slack after it, soon, can be large.
	hangTime = 200 * time.Millisecond

	// chances is how often a call may return after its context has ended, with an error that does not say so. See last.
	chances = 5

	// In awayTime, an engine that pauses for a second, as ZooKeeper's driver does, dials again, and
	// one whose pauses end at 50 ms dials some 60 times. mostDials is far below the dials without
	// a pause.
	awayTime  = 2500 * time.Millisecond
	mostDials = 200
)

// testHangs checks that every call of an engine returns soon after its context has ended,
// by a deadline and by cancellation, and Close soon, while the server hangs in each way. While it
// closes every connection at once, Open tries again until its deadline, with pauses.
//
// After that the clients reach the server again, and after Close no goroutine and, on Linux, no
// connection is left.
func testHangs(t *testing.T, s Server) {
	r := &hangs{Server: s}
	label := fresh()
	// Goroutines have the label of the one that starts them, but for those that a timer starts.
	pprof.Do(t.Context(), pprof.Labels("hangs", label), func(context.Context) {
		t.Run("calls", func(t *testing.T) {
			r.T = t
			r.run()
		})
		r.wait(t, label)
	})
}

func (r *hangs) run() {
	ways := []way{
		{name: "says nothing", open: Serve(r.T, nil)},
		{name: "no answer to the ClientHello", open: Serve(r.T, r.BeforeTLS), secure: true},
		// In a session, the network holds what is under way, or the connections are lost, and new ones are of no use.
		{name: "requests are held", hang: func(p *Proxy) { p.Hold(ToServer) }},
		{name: "answers are held", hang: func(p *Proxy) { p.Hold(ToClient) }},
		{name: "cut, then it says nothing", hang: func(p *Proxy) {
			p.Hold(ToServer)
			p.Hold(ToClient)
			p.Cut()
		}},
		{name: "cut, then it closes new connections", hang: func(p *Proxy) {
			p.Refuse()
			p.Cut()
		}},
	}
	if addr, err := full(r.T); err == nil {
		ways = append(ways, way{name: "no answer to the SYN", open: addr})
	} else {
		r.Logf("left out: no answer to the SYN: %v", err)
	}
	if r.Host != "" {
		ways = append(ways, way{name: "cut, then the resolver says nothing", host: r.Host, hang: func(p *Proxy) {
			r.Resolve(false)
			p.Cut()
		}, heal: func() { r.Resolve(true) }})
	}
	var running sync.WaitGroup
	for _, w := range ways {
		running.Go(func() { r.try(w) })
	}
	for _, url := range []func(addr, namespace string) string{r.URL, r.TLS} {
		running.Go(func() { r.away(url) })
	}
	running.Wait()
	// It hangs for all, so it comes last.
	r.try(way{name: "server stopped", hang: func(*Proxy) { r.must(r.Suspend()) }, heal: func() { r.must(r.Resume()) }})
}

// calls are those of a Store that must end.
func calls(s stores.Store) []operation {
	return append(operations(s, absent(1)), operation{"Durability", func(ctx context.Context) error {
		_, err := stores.CheckDurability(ctx, s)
		return err
	}}, operation{"8 calls at once", func(ctx context.Context) error { // more than a pool has connections
		errs := make([]error, 8)
		var reading sync.WaitGroup
		for i := range errs {
			reading.Go(func() { _, errs[i] = s.Read(ctx, node(1)) })
		}
		reading.Wait()
		if slices.Contains(errs, nil) {
			return errors.New("one of them has succeeded")
		}
		return errors.Join(errs...)
	}})
}

// hangs is a run of testHangs.
type hangs struct {
	Server
	*testing.T

	mu    sync.Mutex
	addrs []string // of the servers that have hung
}

// way is one way to hang: from the beginning, or in a session through a proxy.
type way struct {
	name   string
	open   string       // the address of a server that hangs from the beginning
	secure bool         // with TLS
	hang   func(*Proxy) // nil if it hangs from the beginning
	host   string       // the name of the proxy's; "" is its address
	heal   func()       // besides Resume of the proxy
}

func (r *hangs) must(err error) {
	if err != nil {
		r.Error(err)
	}
}

// away opens a store whose server closes every connection.
func (r *hangs) away(url func(addr, namespace string) string) {
	p := NewProxy(r.T, r.Addr)
	p.Refuse()
	ctx, cancel := context.WithTimeout(context.Background(), awayTime)
	defer cancel()
	s, err := stores.Open(ctx, url(p.Addr(), fresh()))
	if err == nil {
		_ = s.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Logf("Open tried %d times in %v, while the server closed every connection: %v", p.refused, awayTime, err)
	if ctx.Err() == nil || !errors.Is(err, context.DeadlineExceeded) {
		r.Errorf("the server closes every connection: Open returned before its deadline: %v", err)
	}
	if p.refused < 2 || p.refused > mostDials {
		r.Errorf("the server closes every connection: Open tried %d times in %v, want 2 to %d", p.refused, awayTime, mostDials)
	}
}

// try makes all calls while the server hangs. Each has a store of its own.
func (r *hangs) try(w way) {
	var p *Proxy
	if w.hang != nil {
		p = NewProxy(r.T, r.Addr)
		w.open = p.Addr()
		if _, port, _ := net.SplitHostPort(w.open); w.host != "" {
			w.open = net.JoinHostPort(w.host, port)
		}
	}
	url := r.URL(w.open, fresh())
	if w.secure {
		url = r.TLS(w.open, fresh())
	}
	type user struct {
		operation
		ends []ending // each call begins after the last one has given up
	}
	var users []user
	for i := range endings {
		users = append(users, user{operation{"Open", func(ctx context.Context) error {
			s, err := stores.Open(ctx, url)
			if err == nil {
				_ = s.Close()
			}
			return err
		}}, endings[i : i+1]})
	}
	var used []stores.Store
	var idle, recovers stores.Store
	if p != nil {
		idle, recovers = r.open(w, url), r.open(w, url)
		if idle == nil || recovers == nil {
			return // the server does not answer at all
		}
		for i := range calls(idle) {
			s := r.open(w, url)
			if s == nil {
				return
			}
			used = append(used, s)
			users = append(users, user{calls(s)[i], endings})
		}
	}
	r.mu.Lock()
	r.addrs = append(r.addrs, w.open)
	r.mu.Unlock()
	if p != nil {
		w.hang(p)
	}
	var calling sync.WaitGroup
	for _, u := range users {
		calling.Go(func() {
			for _, ends := range u.ends {
				var err error
				for range chances {
					ctx, cancel := ends.after(hangTime)
					err = r.bounded(w, u.name, hangTime, func() error { return last(ctx, u.run) })
					cancel()
					if err == nil || errors.Is(err, ends.as) {
						break
					}
				}
				if !errors.Is(err, ends.as) {
					r.Errorf("%s: %s: error %v, want one that wraps %q, %d times", w.name, u.name, err, ends.as, chances)
				}
			}
		})
	}
	if p != nil {
		calling.Go(func() { _ = r.bounded(w, "Close of an idle store", 0, idle.Close) })
	}
	calling.Wait()
	for _, s := range used {
		calling.Go(func() { _ = r.bounded(w, "Close", 0, s.Close) })
	}
	calling.Wait()
	if p != nil {
		if p.Resume(); w.heal != nil {
			w.heal()
		}
		recovered(r.T, client{r.T, recovers}, node(1))
		r.must(recovers.Close())
	}
}

// last makes a call again and again until its context has ended: a connection that is cut
// ends a call early, and the next one meets the hang. A call may fail for its own reason just before
// the context ends, so the next one counts, which finds the context ended.
//
// An error that a call gives after its context has ended may still be of its own: the call had failed before, and its
// goroutine was not run until later. So the caller tries again: a call that hangs does the same each time.
func last(ctx context.Context, run func(context.Context) error) error {
	ended := make(chan time.Time, 1)
	defer context.AfterFunc(ctx, func() { ended <- time.Now() })()
	for {
		begin, over := time.Now(), ctx.Err() != nil
		err := run(ctx)
		returned := time.Now()
		if err == nil || over || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return err
		}
		if ctx.Err() != nil && returned.Sub(begin) > hangTime/2 && returned.After(<-ended) {
			return err
		}
		pause()
	}
}

// open opens a store whose server answers.
func (r *hangs) open(w way, url string) stores.Store {
	ctx, cancel := limited()
	defer cancel()
	s, err := stores.Open(ctx, url)
	if err != nil {
		r.Errorf("%s: Open, before it hangs: %v", w.name, err)
	}
	return s
}

// bounded makes a call that has a time, checks that it returns soon after that, and returns its error.
func (r *hangs) bounded(w way, call string, within time.Duration, run func() error) (err error) {
	begin, done := time.Now(), make(chan error, 1)
	go func() { done <- run() }()
	select {
	case err = <-done:
	case <-time.After(within + patience):
		r.Errorf("%s: %s, which had %v, has not returned %v later", w.name, call, within, patience)
		return nil
	}
	if late := time.Since(begin) - within; late > soon {
		r.Errorf("%s: %s, which had %v, returned %v later: %v", w.name, call, within, late, err)
	}
	return err
}

// wait waits until the test has left no goroutine but its own, and no connection.
func (r *hangs) wait(t *testing.T, label string) {
	t.Helper()
	var left []string
	open := 0
	for begin := time.Now(); time.Since(begin) < patience; pause() {
		left, open = goroutinesOf(label), connectionsTo(r.addrs)
		if len(left) == 1 && open == 0 {
			return
		}
	}
	t.Errorf("%d connections are left, and these goroutines, of which one is the test's:\n%s", open, strings.Join(left, "\n\n"))
}

// goroutinesOf returns the stacks of the goroutines that have a label, as the profile of goroutines has them.
func goroutinesOf(label string) (stacks []string) {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, fmt.Sprintf("%q", label)) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// Serve returns the address of a server that says nothing, but for what handle does on each of its connections, unless that is
// nil. They live until the test ends.
func Serve(t testing.TB, handle func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			t.Cleanup(func() { _ = conn.Close() })
			if handle != nil {
				go handle(conn)
			}
		}
	}()
	return listener.Addr().String()
}

// full returns the address of a listener that answers no SYN, because its queue is full
// and nothing is taken from it. It lives until the test ends.
func full(t testing.TB) (string, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if err := shorten(listener.(*net.TCPListener)); err != nil {
		return "", err
	}
	for {
		conn, err := net.DialTimeout("tcp", listener.Addr().String(), hangTime)
		if err != nil {
			return listener.Addr().String(), nil // it hangs
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
}

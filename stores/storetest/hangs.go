package storetest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// Hangs is an engine and its server, for [TestHangs].
type Hangs struct {
	// Addr is where the server listens, "host:port".
	Addr string

	// URL returns the URL of a namespace for [stores.Open]. addr is "host:port", and its
	// host may be a name.
	URL func(addr, namespace string) string

	// TLS is URL with TLS.
	TLS func(addr, namespace string) string

	// BeforeTLS says what the server says on a new connection before the handshake of TLS
	// begins, or is nil if it says nothing.
	BeforeTLS func(net.Conn) error

	// Host is a name of this host, 127.0.0.1. Resolve stops the answers of its resolver, or
	// lets them go on. An empty Host leaves this way out.
	Host    string
	Resolve func(answers bool)

	// Pause stops the processes of the server, as SIGSTOP does, and Continue lets them go
	// on.
	Pause, Continue func() error
}

// hangTime is the time of each call of TestHangs. A call that hangs never returns, so the
// slack after it, soon, can be large.
const hangTime = 200 * time.Millisecond

// TestHangs checks that every call of an engine returns soon after its context has ended,
// by a deadline and by cancellation, and Close soon, while the server hangs in each of these
// ways:
//
//   - it accepts connections and says nothing;
//   - it answers no SYN, because its queue of new connections is full (on Linux);
//   - it does not answer the ClientHello of TLS;
//   - in a session, its answers or the requests are held back;
//   - in a session, the connections are lost, and it says nothing on new ones;
//   - in a session, the connections are lost, and the resolver of its name says nothing;
//   - its process is stopped.
//
// After that the clients reach the server again, and after Close no goroutine and no file
// descriptor is left.
//
// It counts goroutines and descriptors, so it must not run in parallel with other tests. The
// test needs its own server, since it stops it.
func TestHangs(t *testing.T, h Hangs) {
	before := countResources()
	t.Run("calls", func(t *testing.T) {
		r := &hangs{Hangs: h, T: t, worst: make(map[[2]string]time.Duration)}
		var running sync.WaitGroup
		for _, w := range append(r.atOnce(), r.later()...) {
			running.Go(func() { r.try(w) })
		}
		running.Wait()
		// It hangs for all, so it comes last.
		r.try(way{name: "server stopped", open: h.Addr, session: true,
			hang: func() { r.must(h.Pause()) }, heal: func() { r.must(h.Continue()) }})
		for at, late := range r.worst {
			t.Logf("| %s | %s | %v |", at[0], at[1], late.Round(time.Millisecond))
		}
	})
	before.wait(t)
}

// methods are the methods of a Store that take a context.
var methods = []struct {
	name string
	run  func(context.Context, stores.Store) error
}{
	{"List", func(ctx context.Context, s stores.Store) error { _, err := s.List(ctx, "", "\x7f", all); return err }},
	{"Read", func(ctx context.Context, s stores.Store) error { _, err := s.Read(ctx, node(1)); return err }},
	{"Swap", func(ctx context.Context, s stores.Store) error { _, err := s.Swap(ctx, node(1), 0, nil); return err }},
	{"Durability", func(ctx context.Context, s stores.Store) error {
		_, err := stores.CheckDurability(ctx, s)
		return err
	}},
	// More than a pool has connections.
	{"Read, 8 at once", func(ctx context.Context, s stores.Store) error {
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
	}},
}

// hangs is a run of TestHangs.
type hangs struct {
	Hangs
	*testing.T

	mu    sync.Mutex
	worst map[[2]string]time.Duration // by way and call: how long after the context's end
}

// way is one way to hang.
type way struct {
	name       string
	open       string // the address for the URL
	secure     bool   // with TLS
	session    bool   // the server answers until hang is called
	hang, heal func()
}

func (r *hangs) must(err error) {
	if err != nil {
		r.Error(err)
	}
}

// atOnce returns the ways in which a server hangs from the beginning.
func (r *hangs) atOnce() []way {
	nothing := func() {}
	ways := []way{
		{name: "says nothing", open: silent(r.T, nil)},
		{name: "no answer to the ClientHello", open: silent(r.T, r.BeforeTLS), secure: true},
	}
	if addr, err := full(r.T); err == nil {
		ways = append(ways, way{name: "no answer to the SYN", open: addr})
	} else {
		r.Logf("left out: no answer to the SYN: %v", err)
	}
	for i := range ways {
		ways[i].hang, ways[i].heal = nothing, nothing
	}
	return ways
}

// later returns the ways in which a server hangs in a session.
func (r *hangs) later() []way {
	toServer, toClient, lost, unnamed := NewProxy(r.T, r.Addr), NewProxy(r.T, r.Addr), NewProxy(r.T, r.Addr), NewProxy(r.T, r.Addr)
	ways := []way{
		{name: "requests are held", open: toServer.Addr(), hang: func() { toServer.Hold(ToServer) }, heal: toServer.Resume},
		{name: "answers are held", open: toClient.Addr(), hang: func() { toClient.Hold(ToClient) }, heal: toClient.Resume},
		{name: "cut, then it says nothing", open: lost.Addr(), hang: func() {
			lost.Hold(ToServer)
			lost.Hold(ToClient)
			lost.Cut()
		}, heal: lost.Resume},
	}
	if r.Host != "" {
		_, port, _ := net.SplitHostPort(unnamed.Addr())
		ways = append(ways, way{name: "cut, then the resolver says nothing", open: net.JoinHostPort(r.Host, port), hang: func() {
			r.Resolve(false)
			unnamed.Cut()
		}, heal: func() { r.Resolve(true) }})
	}
	for i := range ways {
		ways[i].session = true
	}
	return ways
}

// try makes all calls while the server hangs.
func (r *hangs) try(w way) {
	url := r.URL
	if w.secure {
		url = r.TLS
	}
	name := fresh()
	var opened []stores.Store
	var calls sync.WaitGroup
	var ready []func()
	call := func(name string, run func(context.Context) error) {
		ready = append(ready, func() {
			for _, ends := range endings { // the second one on a connection that the first has given up
				r.bounded(w, name, ends.as, hangTime, run, ends.after)
			}
		})
	}
	call("Open", func(ctx context.Context) error {
		s, err := stores.Open(ctx, url(w.open, name))
		if err == nil {
			_ = s.Close()
		}
		return err
	})
	if w.session {
		for _, m := range methods {
			s, err := open(url(w.open, name))
			if err != nil {
				r.Errorf("%s: Open, before it hangs: %v", w.name, err)
				break
			}
			opened = append(opened, s)
			call(m.name, func(ctx context.Context) error { return m.run(ctx, s) })
		}
	}
	w.hang()
	for _, run := range ready {
		calls.Go(run)
	}
	calls.Wait()
	for i, s := range opened {
		if i == 0 {
			continue // it is to recover
		}
		calls.Go(func() {
			r.bounded(w, "Close", nil, 0, func(context.Context) error { return s.Close() }, endings[0].after)
		})
	}
	calls.Wait()
	w.heal()
	if len(opened) > 0 {
		recovered(r.T, client{r.T, opened[0]}, absent(1).Key)
		r.must(opened[0].Close())
	}
}

// open opens a store whose server answers.
func open(url string) (stores.Store, error) {
	ctx, cancel := limited()
	defer cancel()
	return stores.Open(ctx, url)
}

// bounded makes a call, and checks that it returns soon after its context has ended.
func (r *hangs) bounded(w way, name string, want error, within time.Duration, run func(context.Context) error, after func(time.Duration) (context.Context, context.CancelFunc)) {
	ctx, cancel := after(within)
	defer cancel()
	begin, done := time.Now(), make(chan error, 1)
	go func() { done <- run(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(within + patience):
		r.Errorf("%s: %s, which had %v, has not returned %v later", w.name, name, within, patience)
		return
	}
	late := time.Since(begin) - within
	if late > soon {
		r.Errorf("%s: %s, which had %v, returned %v later: %v", w.name, name, within, late, err)
	}
	if want != nil && !errors.Is(err, want) {
		r.Errorf("%s: %s: error %v, want one that wraps %q", w.name, name, err, want)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := [2]string{w.name, name}
	r.worst[at] = max(r.worst[at], late)
}

// resources are counts of this process.
type resources struct{ goroutines, descriptors int }

func countResources() resources {
	files, _ := os.ReadDir("/proc/self/fd") // 0 where there is none
	return resources{runtime.NumGoroutine(), len(files)}
}

// wait waits until there are no more than before.
func (before resources) wait(t *testing.T) {
	t.Helper()
	var now resources
	for begin := time.Now(); time.Since(begin) < patience; pause() {
		if now = countResources(); now.goroutines <= before.goroutines && now.descriptors <= before.descriptors {
			return
		}
	}
	var stacks bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	t.Errorf("%d goroutines and %d descriptors are left, and there were %d and %d before:\n%s",
		now.goroutines, now.descriptors, before.goroutines, before.descriptors, &stacks)
}

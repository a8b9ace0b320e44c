package storetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// Server is the server behind a [stores.Store], for [TestServer].
type Server struct {
	// Addr is where it listens, "host:port". It is the same after each Start.
	Addr string

	// Open returns an independent client of the cells of a namespace by the server
	// at addr, which is either Addr or a proxy's. It must not use another address of
	// the server, such as one that the server announces. It leaves cleaning up
	// to t.Cleanup, and calls t.Fatal if it fails.
	Open func(t testing.TB, addr, namespace string) stores.Store

	// Damage puts a text in the place where the server keeps the cell of a key, as another
	// program could. [github.com/tickflake/tickflake/stores/engine.ParseCell] takes none of the texts for a cell. A server that keeps
	// the version and the value apart takes both from a text that begins with a version and a
	// space; any other text stands for a version that no cell has.
	Damage func(t testing.TB, namespace, key, text string)

	// Kill ends the server at once, as kill -9 does, and returns when it has ended.
	Kill func() error

	// Start starts it again, on its data, and returns when it is ready.
	Start func() error

	// URL returns the URL of a namespace for [stores.Open]. addr is "host:port", and its
	// host may be a name. A nil URL leaves out what needs the fields below.
	URL func(addr, namespace string) string

	// TLS is URL with TLS, and BeforeTLS does on a new connection what the server does before the handshake. It
	// is nil if the server does nothing.
	TLS       func(addr, namespace string) string
	BeforeTLS func(net.Conn)

	// Host is a name of this host, 127.0.0.1. Resolve makes its resolver answer, or not. An
	// empty Host leaves this way to hang out.
	Host    string
	Resolve func(answers bool)

	// Suspend stops the processes of the server, as SIGSTOP does, and Resume ends that.
	Suspend, Resume func() error
}

const (
	brief    = 2 * time.Second        // for an operation that cannot succeed
	ample    = 10 * time.Second       // for one, in which something must happen first
	glimpse  = 250 * time.Millisecond // for one that is to be too slow
	maxSteps = 64                     // of one Swap through a held connection
)

// recovery is the time for a client to reach its server again.
var recovery = 60 * time.Second // a variable for our own tests

// TestServer checks a [stores.Store], in one subtest for each fault: the server hangs in one of several ways, cells are damaged,
// the connection is cut at each step of a write, the write and its answer come too late, or the server is killed. The test needs
// its own server, since it stops and kills it.
//
// However a server hangs, every call must return soon after its context has ended. It accepts connections and says nothing,
// answers no SYN (on Linux) or no ClientHello; in a session, requests or answers are held; the connections are lost, and
// then it says nothing, or closes new ones at once, or the resolver says nothing; or its process is stopped.
//
// After a lost connection, a Store or its driver may send a write again, but the Store must
// not return [stores.ErrConflict] because of its own write. And a client must recover when
// the server does, without a new Open.
func TestServer(t *testing.T, s Server) {
	for _, check := range []struct {
		name string
		run  func(*testing.T, Server)
	}{
		{"hangs", testHangs},
		{"damaged", testDamaged},
		{"cut anywhere", testCutAnywhere},
		{"late write", testLateWrite},
		{"killed", testKilled},
	} {
		if check.name != "hangs" || s.URL != nil {
			t.Run(check.name, func(t *testing.T) { check.run(t, s) })
		}
	}
}

// rig is a client through a proxy, another beside it, and a cell that both know.
type rig struct {
	*Proxy
	through, beside client
	cell            stores.Cell
}

func newRig(t *testing.T, s Server) *rig {
	t.Helper()
	name := fresh()
	p := NewProxy(t, s.Addr)
	r := &rig{
		Proxy:   p,
		through: client{t, s.Open(t, p.Addr(), name)},
		beside:  client{t, s.Open(t, s.Addr, name)},
	}
	// After this the client has done its one-time work.
	r.cell = r.through.swap(r.through.swap(absent(1), "old"), "old")
	r.through.holds(r.cell)
	r.beside.holds(r.cell)
	return r
}

// outcome has the results of a Swap.
type outcome struct {
	cell stores.Cell
	err  error
	took time.Duration
}

// start begins to write "unknown", in time.
func (r *rig) start(within time.Duration) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		begin := time.Now()
		version, err := r.through.Swap(ctx, r.cell.Key, r.cell.Version, []byte("unknown"))
		done <- outcome{stores.Cell{Key: r.cell.Key, Version: version, Value: []byte("unknown")}, err, time.Since(begin)}
	}()
	return done
}

// end waits for the Swap to return. It must not say that there was another write.
func (r *rig) end(t *testing.T, done <-chan outcome, within time.Duration) outcome {
	t.Helper()
	var o outcome
	select {
	case o = <-done:
	case <-time.After(within + recovery):
		t.Fatalf("Swap, which had %v, has not returned %v later", within, recovery)
	}
	if o.took > within+soon {
		t.Errorf("Swap, which had %v, returned after %v", within, o.took)
	}
	if errors.Is(o.err, stores.ErrConflict) {
		t.Fatalf("Swap: %v, but there was no other write: it takes its own, or none, for another's", o.err)
	}
	t.Logf("Swap returned after %v: %v", o.took.Round(time.Millisecond), o.err)
	return o
}

// settle waits until the client reaches the server again. It must read the old cell or
// the new one: the new one if Swap succeeded.
func (r *rig) settle(t *testing.T, o outcome) {
	t.Helper()
	if is := recovered(t, r.through, r.cell.Key); o.err == nil && !same(is, o.cell) {
		t.Fatalf("Swap returned %v, and the cell is %v", show(o.cell), show(is))
	}
	r.cell = lands(r.beside, r.cell)
	r.writes(t)
}

// writes checks that the client can write again. It may need some attempts, to
// notice which of its connections are dead.
func (r *rig) writes(t *testing.T) {
	t.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < recovery; {
		is := recovered(t, r.through, r.cell.Key)
		ctx, cancel := context.WithTimeout(context.Background(), brief)
		var version uint64
		version, err = r.through.Swap(ctx, is.Key, is.Version, []byte("again"))
		cancel()
		if err == nil {
			r.beside.holds(stores.Cell{Key: is.Key, Version: version, Value: []byte("again")})
			return
		}
		pause()
	}
	t.Fatalf("the client has not written for %v: %v", recovery, err)
}

// recovered reads until the client is in touch with the server.
func recovered(t testing.TB, c client, key string) stores.Cell {
	t.Helper()
	var err error
	for begin := time.Now(); time.Since(begin) < recovery; {
		var cell stores.Cell
		ctx, cancel := context.WithTimeout(context.Background(), brief)
		cell, err = c.Read(ctx, key)
		cancel()
		if err == nil {
			return cell
		}
		pause()
	}
	t.Fatalf("the client has not recovered after %v: %v", recovery, err)
	return stores.Cell{}
}

// pause keeps a loop that tries again from taking the whole machine.
func pause() { time.Sleep(5 * time.Millisecond) }

// A damaged cell is neither taken for another one nor overwritten, and hides no other.
func testDamaged(t *testing.T, s Server) {
	name := fresh()
	c := client{t, s.Open(t, s.Addr, name)}
	good := c.swap(stores.Cell{Key: "z"}, "good")
	for i, text := range []string{"", "garbage", "5", "5x v", " v", "0 v", "07 v", "-5 v", "99999999999999999999 v", "5 " + strings.Repeat("ä", 600)} {
		cell := c.swap(stores.Cell{Key: fmt.Sprint("a", i)}, "good")
		s.Damage(t, name, cell.Key, text)
		ctx, cancel := limited()
		check := func(op string, err error) {
			if !errors.Is(err, stores.ErrDamaged) || errors.Is(err, stores.ErrConflict) {
				t.Errorf("%s, the text is %.12q: error %v, want one that wraps stores.ErrDamaged", op, text, err)
			}
		}
		_, err := c.Read(ctx, cell.Key)
		check("Read", err)
		for _, version := range []uint64{0, cell.Version, 5} {
			_, err = c.Swap(ctx, cell.Key, version, []byte("new"))
			check(fmt.Sprint("Swap of version ", version), err)
		}
		_, err = c.Read(ctx, cell.Key)
		check("Read after Swaps", err)
		cells, err := c.List(ctx, cell.Key, "\x7f", 1)
		for ; err == nil && ctx.Err() == nil; cells, err = c.List(ctx, cell.Key, "\x7f", 1) {
			pause() // it may be out of date
		}
		check("List", err)
		bad, _ := errors.AsType[*stores.DamagedError](err)
		if problem := differs(cells, []stores.Cell{good}); problem != "" || bad == nil || bad.Key != cell.Key {
			t.Errorf("List, the text is %.12q: %s, and the damaged cell is %v", text, problem, bad)
		}
		cancel()
	}
}

// The connection is cut when a number of pieces have gone through, for each number
// that a Swap needs, in either direction.
func testCutAnywhere(t *testing.T, s Server) {
	for _, d := range []Direction{ToServer, ToClient} {
		cuts := 0
		for n := range maxSteps {
			r := newRig(t, s)
			r.Hold(d)
			within, look := brief, glimpse
			if n == 0 { // there is something to cut, however slow the server is
				within, look = ample, ample
			}
			done := r.start(within)
			passed := 0
			for passed < n && r.Held(d, look) {
				r.Pass(d)
				passed++
			}
			cut := passed == n && r.Held(d, look)
			if cut {
				cuts++
				r.Cut()
			}
			r.Resume()
			r.settle(t, r.end(t, done, within))
			if !cut {
				break
			}
		}
		if cuts == 0 {
			t.Errorf("no connection was cut, direction %d", d)
		}
	}
}

// A write arrives after its client has given up and another client has written.
func testLateWrite(t *testing.T, s Server) {
	r := newRig(t, s)
	r.Hold(ToServer)
	if o := r.end(t, r.start(glimpse), glimpse); o.err == nil {
		t.Fatal("Swap returned nil, and nothing has reached the server")
	}
	next := r.beside.swap(r.cell, "by another")
	r.Resume()
	for i := range 50 {
		if is := recovered(t, r.through, r.cell.Key); !same(is, next) {
			t.Fatalf("the cell is %v, want %v: the late write has looked at no version", show(is), show(next))
		}
		r.beside.swap(r.beside.read(node(2)), fmt.Sprint("let time pass ", i))
	}
	r.writes(t)
}

// The server is killed again and again while a client counts up, and another is
// idle.
func testKilled(t *testing.T, s Server) {
	const kills = 3
	name := fresh()
	writer, idle := client{t, s.Open(t, s.Addr, name)}, client{t, s.Open(t, s.Addr, name)}
	idle.read(node(1))
	cell, acked := absent(1), 0
	counted := func(c client) stores.Cell {
		is := recovered(t, c, cell.Key)
		n, err := strconv.Atoi(string(is.Value))
		if acked == 0 && is.Version == 0 {
			n, err = 0, nil
		}
		if err != nil || n < acked || n > acked+1 {
			t.Fatalf("%d was acknowledged, %d written at most, and a client reads %v", acked, acked+1, show(is))
		}
		acked = n
		return is
	}
	count := func() {
		ctx, cancel := context.WithTimeout(context.Background(), brief)
		defer cancel()
		value := []byte(strconv.Itoa(acked + 1))
		version, err := writer.Swap(ctx, cell.Key, cell.Version, value)
		if err != nil {
			cell = counted(writer) // the outcome of this one is unknown; that of the last is not
			return
		}
		cell, acked = stores.Cell{Key: cell.Key, Version: version, Value: value}, acked+1
	}
	var killing sync.WaitGroup
	defer killing.Wait()
	for kill := range kills {
		for range 5 * (kill + 1) { // at different moments of the writes
			count()
		}
		started := make(chan error, 1)
		killing.Go(func() {
			err := s.Kill()
			started <- errors.Join(err, s.Start())
		})
		for running := true; running; {
			select {
			case err := <-started:
				if err != nil {
					t.Fatalf("Kill and Start: %v", err)
				}
				running = false
			default:
				count()
			}
		}
		for before, begin := acked, time.Now(); acked == before; count() {
			if time.Since(begin) > 2*recovery {
				t.Fatalf("no write was acknowledged for %v", 2*recovery)
			}
		}
		counted(idle)
	}
}

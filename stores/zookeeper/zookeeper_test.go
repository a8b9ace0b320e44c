package zookeeper

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/sequence/sequencetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestStore(t *testing.T) {
	_, addr := startServer(t)
	t.Run("Open", func(t *testing.T) {
		open := func(t testing.TB, namespace string) stores.Store { return openStore(t, addr, namespace) }
		storetest.TestStore(t, open)
		sequencetest.TestSequences(t, open)
	})
	t.Run("New", func(t *testing.T) {
		conn := newConn(t, addr)
		storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
			s, err := New(conn, namespace)
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
	t.Run("chroot", func(t *testing.T) {
		storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
			return openURL(t, "zk://"+addr+"/some/where/"+namespace+"?namespace=x")
		})
	})
}

// damage returns the function of a Server that damages cells.
func damage(addr string) func(t testing.TB, namespace, key, text string) {
	return func(t testing.TB, namespace, key, text string) {
		conn := newConn(t, addr)
		if _, err := conn.Set("/"+namespace+"/"+strings.ReplaceAll(key, "/", "+"), []byte(text), -1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	server, addr := startServer(t)
	storetest.TestServer(t, storetest.Server{Addr: addr, Open: openStore, Damage: damage(addr), Kill: server.Kill, Start: server.Start})
}

// A text that is no cell hides none, and a znode that was deleted and made again has the
// data version of before, and another version.
func TestByHand(t *testing.T) {
	t.Parallel()
	_, addr := startServer(t)
	conn := newConn(t, addr)
	s, ctx := openStore(t, addr, "byhand"), limited(t)
	first, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005"}, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"X", "a++b", "a"} {
		if _, err := conn.Create("/byhand/"+name, []byte("not a cell"), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	if cells, err := s.List(ctx, "", "\xff", 1); !errors.Is(err, stores.ErrDamaged) || len(cells) != 1 {
		t.Errorf("List: %v, %v; want one cell and one that is damaged", cells, err)
	}
	for _, wrong := range []uint64{1, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64, math.MaxInt64} {
		if _, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005", Version: wrong}, nil); !errors.Is(err, stores.ErrConflict) {
			t.Errorf("Swap of version %d: %v, want a conflict", wrong, err)
		}
	}
	if err := conn.Delete("/byhand/node+0000005", -1); err != nil {
		t.Fatal(err)
	}
	if cell, err := s.Read(ctx, "node/0000005"); err != nil || cell.Version != 0 {
		t.Errorf("Read of a deleted cell: %v, %v", cell, err)
	}
	for _, what := range []string{"deleted", "deleted and made again"} {
		if _, err := swapCell(ctx, s, first, []byte("late")); !errors.Is(err, stores.ErrConflict) {
			t.Errorf("Swap of a cell that was %s: %v, want a conflict", what, err)
		}
		if _, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005"}, []byte("again")); err != nil && what == "deleted" {
			t.Fatal(err)
		}
	}
}

// A session that the server has ended, because it has not heard from the client for
// too long, is followed by another.
func TestExpired(t *testing.T) {
	t.Parallel()
	_, addr := startServer(t)
	proxy := storetest.NewProxy(t, addr)
	s := openStore(t, proxy.Addr(), "expired").(*Store)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cell, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	// The end of the session takes this with it.
	if _, err := s.conn.Create("/ephemeral", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	session := s.conn.SessionID()
	proxy.Refuse()
	proxy.Cut()
	beside := newConn(t, addr)
	for there := true; there; time.Sleep(5 * time.Millisecond) {
		is, _, err := beside.Exists("/ephemeral")
		if ctx.Err() != nil {
			t.Fatal("the session does not expire", err)
		}
		there = is || err != nil
	}
	if _, err := s.Read(ctx, "node/0000001"); err == nil {
		t.Error("Read without a server succeeded")
	}
	proxy.Resume()
	for {
		is, err := s.Read(ctx, "node/0000001")
		if ctx.Err() != nil {
			t.Fatalf("the Store has not recovered: %v", err)
		}
		if err == nil {
			if is.Version != cell.Version || s.conn.SessionID() == session {
				t.Errorf("Read: %v, want %v; session %x after %x", is, cell, s.conn.SessionID(), session)
			}
			break
		}
	}
	if _, err := swapCell(ctx, s, cell, []byte("after")); err != nil {
		t.Error(err)
	}
}

// With a user, znodes are that user's alone.
func TestAuth(t *testing.T) {
	_, addr := startServer(t)
	ctx := limited(t)
	s := openURL(t, "zk://flake:p%40ss%2Fwo%3Ard%25%3F%23@"+addr+"?namespace=fleet")
	cell, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, []byte("mine"))
	if err != nil {
		t.Fatal(err)
	}
	if is, err := s.Read(ctx, "node/0000001"); err != nil || is.Version != cell.Version {
		t.Errorf("Read: %v, %v", is, err)
	}
	for _, url := range []string{"zk://" + addr, "zk://flake:wrong-secret@" + addr} {
		other := openURL(t, url+"?namespace=fleet")
		_, err1 := other.List(ctx, "", "\x7f", 1<<30)
		_, err2 := other.Read(ctx, "node/0000001")
		_, err3 := swapCell(ctx, other, cell, nil)
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, stores.ErrConflict) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want zk.ErrNoAuth", err)
			}
		}
		if _, err := stores.Open(ctx, url+"?namespace=fleet"); !errors.Is(err, stores.ErrRefused) {
			t.Errorf("Open: %v, want stores.ErrRefused", err)
		}
	}
}

// A server that accepts connections and says nothing, as one that hangs, delays a client by
// some seconds, and then the next server is used.
func TestSilentServer(t *testing.T) {
	_, addr := startServer(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test has ended
	if _, err := openStore(t, silent.Addr().String()+","+addr, "silent").Read(limited(t), "node/0000001"); err != nil {
		t.Error(err)
	}
}

// A round begins with the server after the last good one, and ends with it, so that the
// driver waits only once all have been tried.
func TestServers(t *testing.T) {
	var h servers
	if err := h.Init([]string{"a", "b", "c"}); err != nil || h.Len() != 3 {
		t.Fatal(err, h.Len())
	}
	want := func(host string, round bool) {
		t.Helper()
		if h, r := h.Next(); h != host || r != round {
			t.Errorf("Next: %s, %v; want %s, %v", h, r, host, round)
		}
	}
	want("a", false)
	want("b", false)
	h.Connected()
	want("c", false)
	want("a", false)
	want("b", true)
	want("c", false)
}

func BenchmarkSwap(b *testing.B) {
	_, addr := startServer(b)
	s, ctx := openStore(b, addr, "bench"), context.Background()
	cell := stores.Cell{Key: "node/0000001"}
	for b.Loop() {
		var err error
		if cell, err = swapCell(ctx, s, cell, []byte("value")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	_, addr := startServer(b)
	s, ctx := openStore(b, addr, "bench"), context.Background()
	if _, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, []byte("value")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Read(ctx, "node/0000001"); err != nil {
			b.Fatal(err)
		}
	}
}

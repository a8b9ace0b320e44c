// Package engines proves the engines of package stores on real servers. What holds for all of them is written once;
// the file of each engine has the rest. They are in one program, since they wait for servers most of their time, and so
// wait at once. All tests of one engine are those whose names begin with its name: -run '^TestEtcd'.
//
// You need these names: [Engine] runs the suites of storetest, the hangs and the plateau of
// connections on a server; [testRefusals] takes rights away from a store that is used;
// [testPair] and [Trio] let servers fail under a [fleet.Fleet] of keepers, which issue IDs meanwhile.
package engines

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

var long = flag.Bool("long", false, "run what takes long as well: slow failovers, and the faults with a client of the caller's")

// Each store that is opened says what the server does not tell.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

func TestMain(m *testing.M) {
	parallel := "12" // if it is not given: by default, it is the number of processors
	if program.Race {
		parallel = "4" // what runs is ten times as slow, and deadlines are not
	}
	_ = flag.Set("test.parallel", parallel)
	os.Exit(m.Run())
}

// Long skips the test, unless the flag -long is given.
func Long(t testing.TB) {
	t.Helper()
	if !*long {
		t.Skip("it takes long: give -long")
	}
}

// Engine is an engine and a server of it, which the tests kill and start again.
type Engine struct {
	Name   string // with which its errors begin
	Server *servers.Server

	// New opens a store by the engine's New at an address, with a client that is set up
	// as a caller may do it, and closes the client when the test ends. It is nil if there is none.
	New func(t testing.TB, addr, namespace string) stores.Store

	// Damage is that of a [storetest.Server].
	Damage func(t testing.TB, namespace, key, text string)

	// Delete deletes a cell as an operator does, by each way that the server has.
	Delete map[string]func(t testing.TB, namespace, key string)

	// TLS returns the URL with TLS; BeforeTLS is that of [storetest.Server].
	TLS       func(url string) string
	BeforeTLS func(net.Conn)

	// HTTP is for an engine on HTTP.
	HTTP HTTP

	// AtRest and AtMost are the connections of one client, as in its package doc and that of stores. While the
	// network keeps connections open and passes nothing on, a server does not see that the client has closed
	// them: there are AtMost more for each [dial.MaxSilence].
	AtRest, AtMost int

	// Locks are ways to make the server let writes wait until unlock, by their names.
	Locks map[string]func(t testing.TB) (unlock func())
}

// URL is that of a namespace at an address.
func (e Engine) URL(addr, namespace string) string {
	return e.Server.At(addr, "namespace="+namespace)
}

// Open opens a namespace at an address for the length of a test.
func (e Engine) Open(t testing.TB, addr, namespace string) stores.Store {
	t.Helper()
	return Open(t, e.URL(addr, namespace))
}

// Test runs one subtest for each suite.
func (e Engine) Test(t *testing.T) {
	server := storetest.Server{Addr: e.Server.Addr, Open: e.Open, Damage: e.Damage, Kill: e.Server.Kill, Start: e.Server.Start}
	// First, while nothing else is connected.
	t.Run("connections", e.testPlateau)
	rested := e.rest(t)
	// Clients by Open and by New take turns, so that they meet in the same cells as well.
	var opened atomic.Int64
	t.Run("store", func(t *testing.T) {
		storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
			if e.New != nil && opened.Add(1)%2 == 0 {
				return e.New(t, e.Server.Addr, namespace)
			}
			return e.Open(t, e.Server.Addr, namespace)
		})
	})
	for name, remove := range e.Delete {
		t.Run(name, func(t *testing.T) { e.testDeleted(t, name, remove) })
	}
	t.Run("faults", func(t *testing.T) {
		full := server
		full.URL, full.BeforeTLS, full.Suspend, full.Resume = e.URL, e.BeforeTLS, e.Server.Suspend, e.Server.Resume
		full.TLS = func(addr, namespace string) string { return e.TLS(e.URL(addr, namespace)) }
		full.Host = strings.ToLower(string(e.Server.Kind)) + hanging
		full.Resolve = resolve(full.Host)
		storetest.TestServer(t, full)
	})
	t.Run("rested", rested)
	if e.HTTP != (HTTP{}) {
		t.Run("HTTP", e.testHTTP)
	}
	if e.New != nil {
		t.Run("faults of New", func(t *testing.T) {
			Long(t)
			server.Open = e.New
			storetest.TestServer(t, server)
		})
	}
	t.Run("down", e.testDown)
}

// testDeleted checks that a cell that was deleted has no version of before, when there is none and when it was
// made again.
func (e Engine) testDeleted(t *testing.T, namespace string, remove func(t testing.TB, namespace, key string)) {
	s := e.Open(t, e.Server.Addr, namespace)
	first := Cell(t, s, "node/0000005", "first")
	conflicts := func(version uint64) {
		t.Helper()
		_, err := s.Swap(Within(t), first.Key, version, []byte("late"))
		assert.ErrorIs(t, err, stores.ErrConflict)
	}
	remove(t, namespace, first.Key)
	cell, err := s.Read(Within(t), first.Key)
	require.NoError(t, err)
	assert.Equal(t, stores.Cell{Key: first.Key}, cell)
	Until(t, func(ctx context.Context) error { // a List may be out of date
		cells, err := s.List(ctx, "", "\x7f", 9)
		if err == nil && len(cells) > 0 {
			err = fmt.Errorf("%v is listed", cells)
		}
		return err
	})
	conflicts(first.Version)
	assert.NotEqual(t, first.Version, Swap(t, s, cell, "again").Version)
	conflicts(first.Version)
	conflicts(0)
}

// rest opens a store, and returns a test that looks for connections that have died in silence while it rested: no call waits
// for an answer on one. Other tests run meanwhile.
func (e Engine) rest(t *testing.T) func(t *testing.T) {
	proxy := storetest.NewProxy(t, e.Server.Addr)
	s := e.Open(t, proxy.Addr(), "rest")
	cell := Cell(t, s, "node/0000001", "before")
	proxy.Lose()
	began := time.Now()
	return func(t *testing.T) {
		time.Sleep(time.Until(began.Add(dial.MaxSilence)))
		Fails(t, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, func(context.Context) error {
			ctx, cancel := context.WithTimeout(t.Context(), dial.MaxSilence/2)
			defer cancel()
			is, err := s.Read(ctx, cell.Key)
			if err == nil {
				assert.Equal(t, cell, is)
			} else {
				t.Logf("which is tried again: %v", err)
			}
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			return err
		})
	}
}

// testDown checks that the message says who was asked for what, and why there was no answer,
// and shows no password.
func (e Engine) testDown(t *testing.T) {
	s := e.Open(t, e.Server.Addr, "down")
	_, err := s.Read(Within(t), "node/0000001")
	require.NoError(t, err)
	require.NoError(t, e.Server.Kill())
	defer func() { require.NoError(t, e.Server.Start()) }()
	says := func(want string, do func(context.Context) error) {
		t.Helper()
		// In a short time a driver may not have tried to connect.
		err := Fails(t, func(err error) bool { return unreachable.MatchString(err.Error()) }, do)
		require.ErrorContains(t, err, e.Name+": "+want)
		assert.Regexp(t, unreachable, err.Error())
		assert.True(t, stores.KindOf(err).Retryable(), err)
		if e.Server.Password != "" {
			assert.NotContains(t, fmt.Sprintf("%v %+v %q", err, err, err), e.Server.Password[:10])
		}
	}
	for i, do := range Operations(s, stores.Cell{Key: "node/0000001"}) {
		says([]string{"swap node/0000001", "read node/0000001", "list"}[i], do)
	}
	for _, url := range []string{e.URL(e.Server.Addr, "down"), e.TLS(e.URL(e.Server.Addr, "down"))} {
		says("", func(ctx context.Context) error {
			s, err := stores.Open(ctx, url)
			if err == nil {
				_ = s.Close()
			}
			return err
		})
	}
}

// Operations are those of a store: a Swap of the cell, a Read and a List.
func Operations(s stores.Store, cell stores.Cell) [3]func(context.Context) error {
	return [3]func(context.Context) error{
		func(ctx context.Context) error {
			_, err := s.Swap(ctx, cell.Key, cell.Version, []byte("a value"))
			return err
		},
		func(ctx context.Context) error { _, err := s.Read(ctx, cell.Key); return err },
		func(ctx context.Context) error { _, err := s.List(ctx, "", "\x7f", 9); return err },
	}
}

// unreachable is how drivers say that nothing listens.
var unreachable = regexp.MustCompile("refused|no connection to a server|no servers available")

// Refusal is a cause for which a server refuses what it has allowed before.
type Refusal struct {
	Store        stores.Store
	Refuse, Fix  func()
	Want, Advice string // in the error
	Reads        bool   // Read and List are refused as well
}

// testRefusals checks that a refusal is an error of the kind refused, even if it begins while the
// store is used, and that the same store works again when the cause is gone.
func testRefusals(t *testing.T, all map[string]func(t *testing.T) Refusal) {
	for name, prepare := range all {
		t.Run(name, func(t *testing.T) {
			r := prepare(t)
			const key = "node/0000001"
			cell := Cell(t, r.Store, key, "before")
			refused := func(err error, want string) {
				t.Helper()
				require.ErrorContains(t, err, want)
				assert.ErrorContains(t, err, r.Advice)
				assert.Equal(t, stores.Permanent, stores.KindOf(err), err)
				assert.NotErrorIs(t, err, stores.ErrConflict)
			}
			r.Refuse()
			for what, do := range Operations(r.Store, cell) {
				// The first use of a connection that the server has closed may fail otherwise, some
				// servers wait until they close it, and NATS does not answer.
				err := Fails(t, func(err error) bool {
					return stores.KindOf(err) == stores.Permanent || errors.Is(err, stores.ErrConflict)
				}, do)
				switch {
				case what == 0:
					refused(err, r.Want)
				case err != nil || r.Reads:
					refused(err, "")
				}
			}
			r.Fix()
			Write(t, r.Store, key, "after")
		})
	}
}

// Open opens a store for the length of a test.
func Open(t testing.TB, url string) stores.Store {
	t.Helper()
	s, err := stores.Open(Within(t), url)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// relay returns an address that leads to a server. What the two say to each other passes through ask and answer.
func relay(t testing.TB, addr string, ask, answer func(to io.Writer, from io.Reader)) string {
	t.Helper()
	pass := func(how func(io.Writer, io.Reader), to, from net.Conn) {
		how(to, from)
		_, _ = to.Close(), from.Close() // the other direction ends, too
	}
	return storetest.Serve(t, func(client net.Conn) {
		server, err := net.Dial("tcp", addr)
		if err != nil {
			_ = client.Close()
			return
		}
		go pass(ask, server, client)
		pass(answer, client, server)
	})
}

// plain changes nothing.
func plain(to io.Writer, from io.Reader) { _, _ = io.Copy(to, from) }

// Cell writes a value into a cell, whatever it held, and returns the cell.
func Cell(t testing.TB, s stores.Store, key, value string) stores.Cell {
	t.Helper()
	cell, err := s.Read(Within(t), key)
	require.NoError(t, err)
	return Swap(t, s, cell, value)
}

// Write is [Cell] on a store that may not work yet.
func Write(t testing.TB, s stores.Store, key, value string) (cell stores.Cell) {
	t.Helper()
	Until(t, func(ctx context.Context) error {
		is, err := s.Read(ctx, key)
		if err == nil {
			is.Version, err = s.Swap(ctx, key, is.Version, []byte(value))
		}
		cell = stores.Cell{Key: key, Version: is.Version, Value: []byte(value)}
		return err
	})
	return cell
}

// Swap replaces a cell, and returns the new one.
func Swap(t testing.TB, s stores.Store, old stores.Cell, value string) stores.Cell {
	t.Helper()
	version, err := s.Swap(Within(t), old.Key, old.Version, []byte(value))
	require.NoError(t, err)
	return stores.Cell{Key: old.Key, Version: version, Value: []byte(value)}
}

// Works writes a cell twice into an empty store, and looks at it.
func Works(t testing.TB, s stores.Store) {
	t.Helper()
	cell := stores.Cell{Key: "node/0000001"}
	for _, value := range []string{"one", "two"} {
		cell = Swap(t, s, cell, value)
		is, err := s.Read(Within(t), cell.Key)
		require.NoError(t, err)
		assert.Equal(t, cell, is)
	}
	assert.Equal(t, []stores.Cell{cell}, Cells(t, s))
}

// Cells lists all cells of a store.
func Cells(t testing.TB, s stores.Store) []stores.Cell {
	t.Helper()
	cells, err := s.List(Within(t), "", "\x7f", 1<<30)
	require.NoError(t, err)
	return cells
}

// Promises is what the server of a store promises.
func Promises(t testing.TB, s stores.Store) stores.Durability {
	t.Helper()
	promises, err := stores.CheckDurability(Within(t), s)
	require.NoError(t, err)
	return promises
}

// Judged checks what store check and the log say of the settings of a store's server: nothing, or one risk.
func Judged(t testing.TB, s stores.Store, risk string) {
	t.Helper()
	promises := Promises(t, s)
	assert.Empty(t, slices.Concat(promises.Forgets, promises.Unknown))
	if risk == "" {
		assert.Empty(t, promises.Risks)
	} else if assert.Len(t, promises.Risks, 1) {
		assert.Contains(t, promises.Risks[0], risk)
	}
}

// Within is a context for what takes a moment. It ends a hang: the disk of a busy machine takes seconds.
func Within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Patience is how long a failover and the recovery of a fleet may take on a busy machine.
const Patience = 2 * time.Minute

// pause is between the tries of a loop.
func pause() { time.Sleep(20 * time.Millisecond) }

// Fails calls do, as Until does, until its error is one that is wanted, and returns that: what is asked too early
// or has too little time may fail otherwise. It returns nil if there is no error.
func Fails(t testing.TB, wanted func(error) bool, do func(context.Context) error) (err error) {
	t.Helper()
	Until(t, func(ctx context.Context) error {
		if err = do(ctx); err == nil || wanted(err) {
			return nil
		}
		return err
	})
	return err
}

// Until calls f until it returns nil. A call has a second, as a server may never answer it, and after
// a call that took longer, as on a slow disk, twice the time. After two minutes the test fails at once.
func Until(t testing.TB, f func(context.Context) error) {
	t.Helper()
	begin, limit := time.Now(), time.Second
	for ; ; pause() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		err := f(ctx)
		if ctx.Err() != nil {
			limit = min(2*limit, 30*time.Second)
		}
		cancel()
		if err == nil {
			return
		}
		if time.Since(begin) > Patience {
			t.Fatalf("after %v: %v", Patience, err)
		}
	}
}

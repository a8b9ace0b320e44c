package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
		client := newClient(t, addr)
		defer client.Close() //nolint:errcheck // the test has ended
		storetest.TestStore(t, func(t testing.TB, namespace string) stores.Store {
			s, err := New(client, namespace)
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
}

// damage returns the function of a Server that damages cells.
func damage(addr string) func(t testing.TB, namespace, key, text string) {
	return func(t testing.TB, namespace, key, text string) {
		client := newClient(t, addr)
		defer client.Close() //nolint:errcheck // the test has ended
		if _, err := client.Put(limited(t), "/"+namespace+"/"+key, text); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	server, addr := startServer(t)
	storetest.TestServer(t, storetest.Server{Addr: addr, Open: openStore, Damage: damage(addr), Kill: server.Kill, Start: server.Start})
}

func TestServerNew(t *testing.T) {
	t.Parallel()
	server, addr := startServer(t)
	storetest.TestServer(t, storetest.Server{
		Addr: addr, Damage: damage(addr), Kill: server.Kill, Start: server.Start,
		Open: func(t testing.TB, addr, namespace string) stores.Store {
			client := newClient(t, addr) // with the driver's default of 100 attempts
			t.Cleanup(func() { _ = client.Close() })
			s, err := New(client, namespace)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}

// A key that was deleted has no version of before, and a text that is no cell hides none.
func TestByHand(t *testing.T) {
	_, addr := startServer(t)
	client := newClient(t, addr)
	defer client.Close() //nolint:errcheck // the test has ended
	s, ctx := openStore(t, addr, "byhand"), limited(t)
	first, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005"}, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Delete(ctx, "/byhand/node/0000005"); err != nil {
		t.Fatal(err)
	}
	if cell, err := s.Read(ctx, "node/0000005"); err != nil || cell.Version != 0 {
		t.Errorf("Read of a deleted cell: %v, %v", cell, err)
	}
	if _, err := swapCell(ctx, s, first, []byte("late")); !errors.Is(err, stores.ErrConflict) {
		t.Errorf("Swap of a deleted cell: %v, want a conflict", err)
	}
	again, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005"}, []byte("again"))
	if err != nil || again.Version == first.Version {
		t.Errorf("Swap of a deleted cell: %v, %v", again, err)
	}
	for _, name := range []string{"", "X", "a//b", "０"} { // no keys of ours
		if _, err := client.Put(ctx, "/byhand/"+name, "not a cell"); err != nil {
			t.Fatal(err)
		}
	}
	if cells, err := s.List(ctx, "", "\xff", 9); err != nil || len(cells) != 1 {
		t.Errorf("List: %v, %v; want one cell", cells, err)
	}
}

// A restored snapshot takes revisions back. A cell that was written again since then may
// have the revision of a lost write, and its version is another.
func TestRevisionsThatRecur(t *testing.T) {
	_, before := startServer(t)
	_, restored := startServer(t)
	ctx := limited(t)
	old, s := openStore(t, before, "x"), openStore(t, restored, "x")
	lost, err := swapCell(ctx, old, stores.Cell{Key: "node/0000005"}, []byte("lost"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := swapCell(ctx, s, stores.Cell{Key: "node/0000005"}, []byte("other"))
	if err != nil {
		t.Fatal(err)
	}
	revision := func(addr string) int64 {
		client := newClient(t, addr)
		defer client.Close() //nolint:errcheck // only asked a question
		resp, err := client.Get(ctx, "/x/node/0000005")
		if err != nil || len(resp.Kvs) != 1 {
			t.Fatal(resp, err)
		}
		return resp.Kvs[0].ModRevision
	}
	if a, b := revision(before), revision(restored); a != b {
		t.Fatalf("revisions %d and %d, want the same", a, b)
	}
	if _, err := swapCell(ctx, s, lost, []byte("blind")); !errors.Is(err, stores.ErrConflict) {
		t.Errorf("Swap at the version of a lost write: %v, want a conflict", err)
	}
	if is, err := s.Read(ctx, other.Key); err != nil || string(is.Value) != "other" {
		t.Errorf("the cell is %q, %v", is.Value, err)
	}
}

// More cells than one request of List asks for.
func TestListPages(t *testing.T) {
	_, addr := startServer(t)
	client := newClient(t, addr)
	defer client.Close() //nolint:errcheck // the test has ended
	s, ctx := openStore(t, addr, "pages"), limited(t)
	const cells = page + 2
	key := func(n int) string { return fmt.Sprintf("node/%07d", n) }
	for begin := 0; begin < cells; begin += 100 {
		var puts []clientv3.Op
		for n := begin; n < min(begin+100, cells); n++ {
			puts = append(puts, clientv3.OpPut("/pages/"+key(n), "7 value"))
		}
		if _, err := client.Txn(ctx).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List(ctx, "", "\x7f", 1<<30)
	if err != nil || len(list) != cells {
		t.Fatalf("List: %d cells, %v; want %d", len(list), err, cells)
	}
	for i, cell := range list {
		if cell.Key != key(i) {
			t.Fatalf("cell %d is %s", i, cell.Key)
		}
	}
}

// flaky applies each transaction, and then says that it was cut off, as a proxy does
// that ends a stream.
type flaky struct {
	pb.UnimplementedKVServer
	code codes.Code
	txns atomic.Int64
}

// Range has one cell, of version 7.
func (f *flaky) Range(_ context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{}, Kvs: []*mvccpb.KeyValue{{Key: r.Key, Value: []byte("7 v"), ModRevision: 3}}}, nil
}

func (f *flaky) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	if f.txns.Add(1) == 1 {
		return nil, status.Error(f.code, "cut off")
	}
	// A second attempt finds the version that the first has made.
	return &pb.TxnResponse{Header: &pb.ResponseHeader{}, Succeeded: false}, nil
}

func TestWriteIsNotRepeated(t *testing.T) {
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Unknown, codes.Internal, codes.ResourceExhausted} {
		t.Run(code.String(), func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			defer server.Stop()
			kv := &flaky{code: code}
			pb.RegisterKVServer(server, kv)
			go server.Serve(listener) //nolint:errcheck // Stop ends it

			client := newClient(t, listener.Addr().String())
			defer client.Close() //nolint:errcheck // the test has ended
			given, err := New(client, "x")
			if err != nil {
				t.Fatal(err)
			}
			for name, s := range map[string]stores.Store{"New": given, "Open": openStore(t, listener.Addr().String(), "x")} {
				kv.txns.Store(0)
				_, err := swapCell(limited(t), s, stores.Cell{Key: "node/0000001", Version: 7}, []byte("value"))
				if err == nil || errors.Is(err, stores.ErrConflict) {
					t.Errorf("%s: Swap: %v, want an unknown outcome", name, err)
				}
				if n := kv.txns.Load(); n != 1 {
					t.Errorf("%s: %d transactions were sent", name, n)
				}
			}
		})
	}
}

func TestAuth(t *testing.T) {
	_, addr := startServer(t)
	client := newClient(t, addr)
	defer client.Close() //nolint:errcheck // the test has ended
	ctx := limited(t)
	const password = "p@ss/wo:rd%?#"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"root", "flake"} {
		_, err := client.UserAdd(ctx, user, password)
		must(err)
	}
	_, err := client.UserGrantRole(ctx, "root", "root")
	must(err)
	_, err = client.RoleAdd(ctx, "leases")
	must(err)
	// As the package's doc says.
	_, err = client.RoleGrantPermission(ctx, "leases", "/fleet/", clientv3.GetPrefixRangeEnd("/fleet/"), clientv3.PermissionType(clientv3.PermReadWrite))
	must(err)
	_, err = client.UserGrantRole(ctx, "flake", "leases")
	must(err)
	_, err = client.AuthEnable(ctx)
	must(err)

	s := openURL(t, "etcd://flake:p%40ss%2Fwo%3Ard%25%3F%23@"+addr+"?namespace=fleet")
	cell, err := swapCell(ctx, s, stores.Cell{Key: "node/0000001"}, []byte("mine"))
	must(err)
	if is, err := s.Read(ctx, "node/0000001"); err != nil || is.Version != cell.Version {
		t.Errorf("Read: %v, %v", is, err)
	}
	if list, err := s.List(ctx, "", "\x7f", 1<<30); err != nil || len(list) != 1 {
		t.Errorf("List: %v, %v", list, err)
	}
	other := openURL(t, "etcd://flake:p%40ss%2Fwo%3Ard%25%3F%23@"+addr+"?namespace=other")
	if _, err := swapCell(ctx, other, stores.Cell{Key: "node/0000001"}, nil); err == nil || errors.Is(err, stores.ErrConflict) || strings.Contains(err.Error(), password) {
		t.Errorf("Swap without the right: %v", err)
	}
	if _, err := stores.Open(ctx, "etcd://"+addr); !errors.Is(err, stores.ErrRefused) {
		t.Errorf("Open without a user: %v", err)
	}
	if _, err := stores.Open(ctx, "etcd://flake:p%40ss%2Fwo%3Ard%25%3F%23@"+addr+"?namespace=other"); !errors.Is(err, stores.ErrRefused) {
		t.Errorf("Open without the right: %v", err)
	}
	_, err = Open(ctx, "etcd://flake:wrong-secret@"+addr)
	if !errors.Is(err, stores.ErrRefused) || !strings.Contains(err.Error(), "etcd at "+addr+": open: ") || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("Open with a wrong password: %v", err)
	}
}

// Open with a user logs in, and gives up when its context ends.
func TestOpenEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test has ended
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = Open(ctx, "etcd://flake:secret@"+silent.Addr().String())
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "secret") || time.Since(begin) > 5*time.Second {
		t.Errorf("Open returned after %v: %v", time.Since(begin), err)
	}
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

// A server that was away for long is found soon after it is back: the attempts to connect
// come about once a second, however many have failed. By default, gRPC makes ten in two
// minutes.
func TestConnectsAgain(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test has ended
	attempts := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			attempts <- struct{}{}
		}
	}()
	s := openURL(t, "etcd://"+listener.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Read(ctx, "node/0000001"); err == nil {
		t.Fatal("there is no server, and Read has returned nil")
	}
	late := time.After(45 * time.Second)
	for n := range 10 {
		select {
		case <-attempts:
		case <-late:
			t.Fatalf("%d attempts in 45 s", n)
		}
	}
}

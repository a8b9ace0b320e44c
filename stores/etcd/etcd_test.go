package etcd

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// openURL opens a Store for the length of a test, without the questions to the server.
func openURL(t testing.TB, url string) stores.Store {
	t.Helper()
	s, err := open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	storetest.TestURLs(t, open, "etcd://u:SECRET@h", map[string]string{
		"etcd://u:SECRET@h/path":     "a path after the host",
		"etcd://u@h":                 "a user without a password, or",
		"etcd://:SECRET@h":           "a user without a password, or",
		"etcd://u:SECRET@h?x=SECRET": "there are namespace, cacert, cert, key",
	})
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

			s := openURL(t, "etcd://"+listener.Addr().String())
			if _, err = s.Swap(t.Context(), "node/0000001", 7, []byte("value")); err == nil || errors.Is(err, stores.ErrConflict) {
				t.Errorf("Swap: %v, want an unknown outcome", err)
			}
			if n := kv.txns.Load(); n != 1 {
				t.Errorf("%d transactions were sent", n)
			}
		})
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
	late := time.After(10 * time.Second) // gRPC alone takes 15
	for n := range 6 {
		select {
		case <-attempts:
		case <-late:
			t.Fatalf("%d attempts in 10 s", n)
		}
	}
}

// Authorities that are renewed count at the next handshake.
func TestRenewed(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0])))
	defer server.Stop()
	pb.RegisterKVServer(server, new(flaky))
	go server.Serve(listener) //nolint:errcheck // Stop ends it
	file := filepath.Join(t.TempDir(), "ca.pem")
	good := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	s := openURL(t, "etcds://"+listener.Addr().String()+"?cacert="+file)
	for _, renewed := range []bool{false, true} {
		text := []byte("-")
		if renewed {
			text = good
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{false: time.Second / 2, true: time.Minute}[renewed])
		defer cancel()
		if _, err := s.Read(ctx, "node/0000001"); (err == nil) != renewed {
			t.Errorf("renewed: %v; Read: %v", renewed, err)
		}
	}
}

// What a server says that starts, stops, fails over or refuses has its kind, and what to do.
func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		err    error
		kind   stores.Kind
		advice string
	}{
		{status.Error(codes.Unavailable, "error reading from server: EOF"), stores.Transient, "cannot answer now"},
		{rpctypes.ErrNoLeader, stores.Transient, "cannot answer now"},
		{rpctypes.ErrLeaderChanged, stores.Transient, "cannot answer now"},
		{rpctypes.ErrNotLeader, stores.Transient, "cannot answer now"},
		{rpctypes.ErrStopped, stores.Transient, "cannot answer now"},
		{rpctypes.ErrTimeout, stores.Transient, "cannot answer now"},
		{rpctypes.ErrInvalidAuthToken, stores.Transient, "cannot answer now"},
		{rpctypes.ErrTooManyRequests, stores.Transient, "a faster disk"},
		{rpctypes.ErrPermissionDenied, stores.Permanent, "grant the right"},
		{rpctypes.ErrNoSpace, stores.Permanent, "disarm its alarm"},
		{stores.ErrConflict, stores.Transient, ""},
	} {
		if err := explain(t.Context(), tt.err); stores.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.advice) {
			t.Errorf("%v is %v, want %v with %q", err, stores.KindOf(err), tt.kind, tt.advice)
		}
	}
}

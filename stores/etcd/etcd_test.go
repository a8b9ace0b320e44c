package etcd

import (
	"context"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
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
			require.NoError(t, err)
			server := grpc.NewServer()
			defer server.Stop()
			kv := &flaky{code: code}
			pb.RegisterKVServer(server, kv)
			go server.Serve(listener) //nolint:errcheck // Stop ends it

			s := openURL(t, "etcd://"+listener.Addr().String())
			_, err = s.Swap(t.Context(), "node/0000001", 7, []byte("value"))
			assert.Error(t, err, "the outcome is unknown")
			assert.NotErrorIs(t, err, stores.ErrConflict)
			assert.EqualValues(t, 1, kv.txns.Load(), "transactions were sent")
		})
	}
}

// A server that was away for long is found soon after it is back: the attempts to connect
// come about once a second, however many have failed. By default, gRPC makes ten in two
// minutes.
func TestConnectsAgain(t *testing.T) {
	t.Parallel()
	attempts := make(chan struct{}, 100)
	s := openURL(t, "etcd://"+storetest.Serve(t, func(conn net.Conn) {
		_ = conn.Close()
		attempts <- struct{}{}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := s.Read(ctx, "node/0000001")
	require.Error(t, err, "there is no server")
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
	require.NoError(t, err)
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0])))
	defer server.Stop()
	pb.RegisterKVServer(server, new(flaky))
	go server.Serve(listener) //nolint:errcheck // Stop ends it
	file := filepath.Join(t.TempDir(), "ca.pem")
	good := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, good, 0o600))
	s := openURL(t, "etcds://"+listener.Addr().String()+"?cacert="+file)
	read := func(text []byte, within time.Duration) error {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := s.Read(ctx, "node/0000001")
		return err
	}
	assert.Error(t, read([]byte("-"), time.Second/2))
	assert.NoError(t, read(good, time.Minute))
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
		err := explain(t.Context(), tt.err)
		assert.Equal(t, tt.kind, stores.KindOf(err), "%v", err)
		assert.ErrorContains(t, err, tt.advice)
	}
}

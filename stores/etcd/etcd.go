package etcd

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/internal/remote"
)

// Store is a [lease.Store] on etcd. It is safe for use by several goroutines at once.
type Store struct {
	kv        clientv3.KV
	namespace string
	prefix    string
	endpoints func() []string
	close     func() error
}

var _ lease.Store = (*Store)(nil)

// New returns a Store that uses a client of the caller's, who closes it when no
// Store uses it any more. It keeps the cells of a namespace, by which fleets that share
// an etcd are told apart; the error of a bad name is a [*lease.NamespaceError], and a
// nil client is an error, too.
//
// The client's settings decide on TLS and credentials. What was put around its field
// KV, such as a prefix for all keys, is passed by.
func New(client *clientv3.Client, namespace string) (*Store, error) {
	if err := lease.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	if client == nil {
		return nil, errors.New("etcd: New needs a client, but was given nil")
	}
	return &Store{
		kv:        clientv3.NewKVFromKVClient(once{clientv3.RetryKVClient(client)}, client),
		namespace: namespace,
		// The slash ends the name, so that no namespace is the beginning of another.
		prefix:    "/" + namespace + "/",
		endpoints: client.Endpoints,
		close:     func() error { return nil },
	}, nil
}

var urlFormat = remote.Format{
	Plain: remote.Scheme{Name: "etcd", Port: "2379"},
	TLS:   remote.Scheme{Name: "etcds", Port: "2379"},
}

// Open returns a Store on the etcd at a URL,
//
//	etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][?namespace=NAME]
//
// or etcds:// with TLS, with these options more: cacert=FILE for the certificate
// authorities to trust, in PEM, instead of the system's, and cert=FILE&key=FILE for
// the client's certificate. The port is 2379 and the namespace
// [lease.DefaultNamespace] if there is none. Special characters of the password are
// percent-encoded.
//
// Only if the URL has a user does Open wait for the server, until ctx ends, to log
// in. Otherwise a server that cannot be reached is reported by the Store's methods.
// The error is a [*lease.URLError] or an [*OpenError]. Close the Store when it is no
// longer used.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	u, err := urlFormat.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Path != "" {
		return nil, u.Refuse("a path after the host; want none, and the namespace as ?namespace=NAME", nil)
	}
	if (u.User == "") != (u.Password == "") {
		return nil, u.Refuse("a user without a password, or a password without a user", nil)
	}
	tlsConfig, err := u.TLSConfig()
	if err != nil {
		return nil, err
	}
	// The client lives as long as this context, so it must outlive ctx, and end with
	// it only while New is waiting.
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	config := clientv3.Config{
		Context:  alive,
		Username: u.User,
		Password: u.Password,
		TLS:      tlsConfig,
		// A connection whose other end is gone without a word is given up after 13 s.
		// More often than every 10 s gRPC does not ask.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// One attempt only. See once for why.
		MaxUnaryRetries: 1,
		Logger:          zap.NewNop(), // what matters is in the errors
	}
	web := "http://"
	if tlsConfig != nil {
		web = "https://"
	}
	for _, host := range u.Hosts {
		config.Endpoints = append(config.Endpoints, web+host)
	}
	stop := context.AfterFunc(ctx, end)
	client, err := clientv3.New(config)
	if !stop() && err == nil {
		err = errors.Join(ctx.Err(), client.Close())
	}
	if err != nil {
		end()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, &OpenError{Hosts: strings.Join(u.Hosts, ","), Err: err}
	}
	s, err := New(client, u.Namespace)
	if err != nil {
		end()
		return nil, errors.Join(err, client.Close())
	}
	s.close = func() error { defer end(); return client.Close() }
	return s, nil
}

// OpenError reports a server that [Open] could not use.
type OpenError struct {
	Hosts string // as in the URL
	Err   error  // the driver's reason
}

func (e *OpenError) Error() string {
	return "etcd: open " + e.Hosts + ": " + e.Err.Error() + "; check that it is reachable and the credentials are right"
}

// Unwrap returns the driver's reason.
func (e *OpenError) Unwrap() error { return e.Err }

// Close ends what [Open] opened, and returns the driver's error. It does nothing to a
// client given to [New].
func (s *Store) Close() error { return s.close() }

// page is how many cells one request of List asks for.
const page = 4096

// List returns all cells as they are at one instant, up to 4,096 of them in one
// round trip. Its error wraps the driver's or the context's.
func (s *Store) List(ctx context.Context) ([]lease.Cell, error) {
	var cells []lease.Cell
	from, end := s.prefix, clientv3.GetPrefixRangeEnd(s.prefix)
	for {
		if err := ctx.Err(); err != nil {
			return nil, s.failed(ctx, "list", -1, err)
		}
		resp, err := s.kv.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return nil, s.failed(ctx, "list", -1, err)
		}
		for _, kv := range resp.Kvs {
			if node, ok := remote.NodeOf(string(kv.Key[len(s.prefix):])); ok {
				cells = append(cells, lease.Cell{Node: node, Version: uint64(kv.ModRevision), Value: kv.Value})
			}
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return cells, nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// Read returns the cell of a node number, in one round trip. It is linearizable: the
// server confirms with a majority that it is up to date. Its error wraps the driver's
// or the context's, or says that no cell can have that node number.
func (s *Store) Read(ctx context.Context, node int64) (lease.Cell, error) {
	if err := errors.Join(remote.CheckNode(node), ctx.Err()); err != nil {
		return lease.Cell{}, s.failed(ctx, "read", node, err)
	}
	resp, err := s.kv.Get(ctx, s.prefix+remote.Key(node))
	if err != nil {
		return lease.Cell{}, s.failed(ctx, "read", node, err)
	}
	if len(resp.Kvs) == 0 {
		return lease.Cell{Node: node}, nil
	}
	return lease.Cell{Node: node, Version: uint64(resp.Kvs[0].ModRevision), Value: resp.Kvs[0].Value}, nil
}

// Swap replaces the value of a cell if its version still is old.Version, in one round
// trip. The version is the key's ModRevision, which etcd counts for all keys
// together, so that it never comes again, not even if the key is deleted.
//
// Its error wraps [lease.ErrConflict] if it found another version and changed nothing.
// After any other, which wraps the driver's or the context's, it is not known whether
// the value was, or will be, written.
func (s *Store) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	if err := errors.Join(remote.CheckNode(old.Node), ctx.Err()); err != nil {
		return lease.Cell{}, s.failed(ctx, "swap", old.Node, err)
	}
	name := s.prefix + remote.Key(old.Node)
	// A version beyond int64 turns negative here, and no revision is.
	same := clientv3.Compare(clientv3.ModRevision(name), "=", int64(old.Version))
	resp, err := s.kv.Txn(ctx).If(same).Then(clientv3.OpPut(name, string(value))).Commit()
	switch {
	case err != nil:
		return lease.Cell{}, s.failed(ctx, "swap", old.Node, err)
	case !resp.Succeeded:
		return lease.Cell{}, s.failed(ctx, "swap", old.Node, lease.ErrConflict)
	}
	return lease.Cell{Node: old.Node, Version: uint64(resp.Header.Revision), Value: bytes.Clone(value)}, nil
}

// once is a client that sends a transaction at most once. The driver repeats one
// whose attempt was cut off by a proxy or the server (the codes Canceled and
// DeadlineExceeded) while the caller's context lasts. Had the first attempt been
// applied, the second would find its version changed, and the conflict would be
// reported although the value was written.
//
// What is left are repetitions of what the server has certainly not applied: gRPC's
// own of a request that never left or was refused unread, and the driver's after a
// refused token or if it had no connection.
type once struct{ pb.KVClient }

func (c once) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The driver does not go on once the context has ended.
	stop := grpc.OnFinish(func(err error) {
		if code := status.Code(err); code == codes.Canceled || code == codes.DeadlineExceeded {
			cancel()
		}
	})
	resp, err := c.KVClient.Txn(ctx, in, append(opts[:len(opts):len(opts)], stop)...)
	return resp, why(outer, err)
}

func (c once) Range(ctx context.Context, in *pb.RangeRequest, opts ...grpc.CallOption) (*pb.RangeResponse, error) {
	resp, err := c.KVClient.Range(ctx, in, opts...)
	return resp, why(ctx, err)
}

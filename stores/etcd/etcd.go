package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/stores"
)

// Store is a [stores.Store] on etcd. It is safe for use by several goroutines at once.
type Store struct {
	kv        clientv3.KV
	namespace string
	prefix    string
	endpoints func() []string
	close     func() error
}

var _ stores.Store = (*Store)(nil)

// New returns a Store that uses the caller's client. The caller closes it when no
// Store uses it any more. The Store keeps the cells of a namespace, which separates fleets
// that share an etcd; a name that [stores.CheckNamespace] refuses and a nil client
// are errors.
//
// The client's settings decide on TLS and credentials. The Store does not use the client's
// field KV, nor a wrapper in it, such as a prefix for all keys.
func New(client *clientv3.Client, namespace string) (*Store, error) {
	if err := stores.CheckNamespace(namespace); err != nil {
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

var urlFormat = stores.URLFormat{
	Plain: stores.URLScheme{Name: "etcd", Port: "2379"},
	TLS:   stores.URLScheme{Name: "etcds", Port: "2379"},
}

func init() {
	stores.Register("etcd", open)
	stores.Register("etcds", open)
}

// most bounds the connections to a server, as the server counts them: gRPC closes a
// connection whose server is silent, and makes the next.
const most = 4

// reconnect is how the client connects again. By default, gRPC waits for up to two minutes
// between attempts, and 20 seconds or more for a server that accepts and says nothing: a
// server that is back, or that has taken over the address, would be found after the grants
// have ended.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 10 * time.Second,
}

// open opens a URL, as the package's doc describes it. If the URL has a user,
// it waits for the server, to log in; else it does not wait.
func open(ctx context.Context, rawURL string) (stores.Store, error) {
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
	// The client lives as long as this context. So the context must outlive ctx, and ends
	// with ctx only during clientv3.New.
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	dialer := &stores.Dialer{Most: most}
	config := clientv3.Config{
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				return dialer.Dial(ctx, "tcp", addr)
			}),
			grpc.WithConnectParams(reconnect),
		},
		Context:  alive,
		Username: u.User,
		Password: u.Password,
		TLS:      tlsConfig,
		// A connection whose other end has vanished is closed after 13 s. gRPC checks
		// every 10 s at most.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// One attempt only: see once.
		MaxUnaryRetries: 1,
		Logger:          zap.NewNop(), // the errors say the same
	}
	web := "http://"
	if tlsConfig != nil {
		web = "https://"
	}
	for _, host := range u.Hosts {
		config.Endpoints = append(config.Endpoints, web+host)
	}
	stop := context.AfterFunc(ctx, end)
	closeAll := func(client *clientv3.Client) error {
		defer end()
		return errors.Join(client.Close(), dialer.Close())
	}
	client, err := clientv3.New(config)
	if !stop() && err == nil {
		err = errors.Join(ctx.Err(), client.Close())
	}
	if last := dialer.LastError(); err != nil && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	if err != nil {
		end()
		_ = dialer.Close()
		return nil, stores.OpenFailed(ctx, stores.At("etcd", u.Hosts...), refused(err))
	}
	s, err := New(client, u.Namespace)
	if err != nil {
		return nil, errors.Join(err, closeAll(client))
	}
	s.close = sync.OnceValue(func() error { return closeAll(client) })
	return s, nil
}

// Close ends the client of a Store that was opened by a URL, and returns the driver's
// error. It does nothing to a client given to [New].
func (s *Store) Close() error { return s.close() }

// page is the largest number of cells that one request of List asks for.
const page = 4096

// List returns the cells with keys in [from, to), at most limit of them, each page of
// 4,096 as it is at one instant, in one round trip. A text that is no cell is a
// [*stores.DamagedError].
func (s *Store) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	var cells []stores.Cell
	var damaged []error
	for len(cells) < limit && from < to {
		if err := ctx.Err(); err != nil {
			return nil, s.failed(ctx, "list", "", err)
		}
		size := min(page, limit-len(cells))
		resp, err := s.kv.Get(ctx, s.prefix+from, clientv3.WithRange(s.end(to)), clientv3.WithLimit(int64(size)))
		if err != nil {
			return nil, s.failed(ctx, "list", "", err)
		}
		for _, kv := range resp.Kvs {
			key := string(kv.Key[len(s.prefix):])
			if stores.CheckKey(key) != nil {
				continue // another program's key
			}
			cell, err := stores.ParseCell(key, kv.Value)
			if err != nil {
				damaged = append(damaged, err)
				continue
			}
			cells = append(cells, cell)
		}
		if !resp.More || len(resp.Kvs) == 0 {
			break
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key[len(s.prefix):]) + "\x00"
	}
	if err := stores.JoinDamaged(damaged); err != nil {
		return cells, s.failed(ctx, "list", "", err)
	}
	return cells, nil
}

// end returns the end of a range in etcd, at most the end of the namespace.
func (s *Store) end(to string) string {
	return min(s.prefix+to, clientv3.GetPrefixRangeEnd(s.prefix))
}

// Read returns the cell of a key, in one round trip. It is linearizable: the server
// confirms with a majority that it is up to date.
func (s *Store) Read(ctx context.Context, key string) (stores.Cell, error) {
	err := stores.CheckKey(key)
	var cell stores.Cell
	if err == nil {
		cell, _, err = s.read(ctx, key)
	}
	if err != nil {
		return stores.Cell{}, s.failed(ctx, "read", key, err)
	}
	return cell, nil
}

// read returns a cell and its revision.
func (s *Store) read(ctx context.Context, key string) (stores.Cell, int64, error) {
	if err := ctx.Err(); err != nil {
		return stores.Cell{}, 0, err
	}
	resp, err := s.kv.Get(ctx, s.prefix+key)
	if err != nil || len(resp.Kvs) == 0 {
		return stores.Cell{Key: key}, 0, err
	}
	cell, err := stores.ParseCell(key, resp.Kvs[0].Value)
	return cell, resp.Kvs[0].ModRevision, err
}

// Swap replaces the value of a cell if it has that version. A new cell
// takes one round trip. Any other takes two: the first compares the version, and the
// second writes on the condition that the key's revision is that of the first. The
// revision alone would not do, since it goes back when a snapshot is restored.
func (s *Store) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	next, err := stores.NextVersion(key, version, value)
	if err == nil {
		err = s.swap(ctx, key, version, stores.FormatCell(next, value))
	}
	if err != nil {
		return 0, s.failed(ctx, "swap", key, err)
	}
	return next, nil
}

func (s *Store) swap(ctx context.Context, key string, version uint64, text []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var revision int64 // 0: there is no such key
	if version != 0 {
		cell, at, err := s.read(ctx, key)
		if err != nil {
			return err
		}
		if cell.Version != version {
			return stores.ErrConflict
		}
		revision = at
	}
	same := clientv3.Compare(clientv3.ModRevision(s.prefix+key), "=", revision)
	resp, err := s.kv.Txn(ctx).If(same).Then(clientv3.OpPut(s.prefix+key, string(text))).Else(clientv3.OpGet(s.prefix + key)).Commit()
	if err != nil || resp.Succeeded {
		return err
	}
	for _, found := range resp.Responses {
		for _, kv := range found.GetResponseRange().GetKvs() {
			if _, err := stores.ParseCell(key, kv.Value); err != nil {
				return err
			}
		}
	}
	return stores.ErrConflict
}

// once is a client that applies a transaction at most once. The driver repeats a
// transaction when a proxy or the server ends the attempt (the codes Canceled and
// DeadlineExceeded) before the caller's context. If the first attempt was
// applied, the second finds its version changed, and would report a conflict
// although the value was written.
//
// The remaining repetitions are of requests that the server has certainly not
// applied: gRPC repeats a request that was never sent or was refused unread, and the driver
// repeats one after a refused token or without a connection.
type once struct{ pb.KVClient }

func (c once) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The driver stops once the context has ended.
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

package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

var open = dial.Register(dial.Form{Name: "etcd", Plain: "etcd:2379", Secure: "etcds:2379", Pair: true}, connect)

// reconnect is how the client connects again. By default, gRPC waits for up to two minutes
// between attempts, and 20 seconds or more for a server that accepts and says nothing: a
// server that is back, or that has taken over the address, would be found after the grants
// have ended.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 10 * time.Second,
}

// connect opens a URL, as the package's doc describes it. If the URL has a user,
// it waits for the server, to log in; else it does not wait.
func connect(ctx context.Context, u *dial.Opening[int64]) error {
	// The client lives as long as this context. So the context must outlive ctx, and ends
	// with ctx only during clientv3.New.
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	config := clientv3.Config{
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(dialing context.Context, addr string) (conn net.Conn, err error) {
				defer func() { engine.Note(ctx, err) }()
				return u.Dialer.Dial(dialing, "tcp", addr)
			}),
			grpc.WithConnectParams(reconnect),
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				return why(ctx, invoke(ctx, method, req, reply, conn, opts...))
			}),
		},
		Context:  alive,
		Username: u.User,
		Password: u.Password,
		// A connection whose other end has vanished is closed after 13 s. gRPC checks
		// every 10 s at most.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// One attempt only: a second transaction would find that the first has changed the version, and report a
		// conflict although the value was written. gRPC repeats a request that was never sent or was refused unread.
		MaxUnaryRetries: 1,
		Logger:          zap.NewNop(), // the errors say the same
	}
	web := "http://"
	if u.TLS != nil {
		web = "https://"
		config.DialOptions = append(config.DialOptions, grpc.WithTransportCredentials(&handshakes{credentials.NewTLS(nil), u.TLS}))
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
		return refused(u.Dialer.Because(err))
	}
	s := u.Store
	// The slash ends the name, so that no namespace is the beginning of another.
	s.Texts, s.Explain = &texts{kv: client.KV, prefix: "/" + u.Namespace + "/"}, explain
	s.Done = func() error { defer end(); return client.Close() }
	return nil
}

// handshakes make each handshake with the files as they are then.
type handshakes struct {
	credentials.TransportCredentials
	secure dial.Secure
}

func (h *handshakes) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := h.secure()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

func (h *handshakes) Clone() credentials.TransportCredentials { return h }

// texts are the keys of a namespace, for the skeleton. A revision is the ModRevision of a key.
type texts struct {
	kv     clientv3.KV
	prefix string
}

func (t *texts) Get(ctx context.Context, key string, _ bool) (engine.Text[int64], error) {
	resp, err := t.kv.Get(ctx, t.prefix+key)
	if err != nil || len(resp.Kvs) == 0 {
		return engine.Text[int64]{Latest: true}, err
	}
	return engine.Text[int64]{Bytes: resp.Kvs[0].Value, Found: true, Revision: resp.Kvs[0].ModRevision, Latest: true}, nil
}

func (t *texts) Put(ctx context.Context, key string, revision int64, text []byte) error {
	same := clientv3.Compare(clientv3.ModRevision(t.prefix+key), "=", revision) // 0: there is no such key
	resp, err := t.kv.Txn(ctx).If(same).Then(clientv3.OpPut(t.prefix+key, string(text))).Commit()
	if err == nil && !resp.Succeeded {
		return stores.ErrConflict
	}
	return err
}

// page is the largest number of keys that one request of Scan asks for.
const page = 4096

func (t *texts) Scan(ctx context.Context, from, to string, most int, found func(string, []byte)) (more bool, err error) {
	resp, err := t.kv.Get(ctx, t.prefix+from, clientv3.WithRange(t.prefix+to), clientv3.WithLimit(int64(min(page, most))))
	if err != nil {
		return false, err
	}
	for _, kv := range resp.Kvs {
		found(string(kv.Key[len(t.prefix):]), kv.Value)
	}
	return resp.More, nil
}

// why returns the error of a request, and makes it wrap the context's error if the context
// has ended the request. The driver would return the context's error alone; only gRPC's
// error names the cause, such as a refused connection.
func why(ctx context.Context, err error) error {
	code := status.Code(err)
	if code != codes.DeadlineExceeded && code != codes.Canceled || ctx.Err() == nil {
		return err
	}
	message := status.Convert(err).Message()
	if message == ctx.Err().Error() {
		return err
	}
	return fmt.Errorf("%w: %s", ctx.Err(), message) // not %w twice: the driver would take gRPC's out
}

// refused gives the server's refusal its kind.
func refused(err error) error {
	answer, ok := errors.AsType[rpctypes.EtcdError](err)
	code := status.Code(err)
	if ok {
		code = answer.Code()
	}
	switch answer {
	case rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied:
		return fmt.Errorf("%w: %w", errCredentials, err)
	case rpctypes.ErrNoSpace:
		return fmt.Errorf("%w: %w", errNoSpace, err)
	case rpctypes.ErrTooManyRequests:
		return fmt.Errorf("%w: %w", errLoad, err)
	case rpctypes.ErrNotLeader, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision: // the next request goes elsewhere, or logs in
		code = codes.Unavailable
	}
	if code == codes.Unavailable && !errors.Is(err, stores.ErrConflict) {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return err
}

var (
	errCredentials = stores.Permanent.New("the server refuses the user, the password or a right: fix the URL, or grant the right that the package doc names")
	errAway        = stores.Transient.New("the server cannot answer now")
	errLoad        = stores.Transient.New("the server has too many requests: give it more processors or a faster disk")
	errNoSpace     = stores.Permanent.New("the server is full and takes no writes: compact and defragment it, and disarm its alarm NOSPACE")
)

// explain adds that the context has ended, and gives refusals their kind. gRPC and the server, which knows
// the deadline, report the end of the context by their own errors. The server's may come a moment before the
// end.
func explain(ctx context.Context, err error) error {
	ended := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 10*time.Millisecond && ended == nil ||
		status.Code(err) == codes.DeadlineExceeded {
		ended = context.DeadlineExceeded
	}
	if ended != nil && !errors.Is(err, ended) && !errors.Is(err, stores.ErrConflict) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return refused(err)
}

package service_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// logs collects lines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newGenerator(t *testing.T, options ...generator.Option) *generator.Generator {
	t.Helper()
	g, err := generator.New(append([]generator.Option{generator.WithNode(1)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

// listen listens on loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// pipes is a listener in memory, for time that is not the machine's.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func pipe(*testing.T) net.Listener {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, errors.New("no server listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// probes is the name of the listener of probes, beside those of the protocols.
const probes = "probes"

// running is a service under test.
type running struct {
	*service.Server
	dial   servicetest.Dial // of a listener, by the name of its protocol, or probes; without TLS
	log    func() string    // what it has logged
	t      *testing.T
	config service.Config
	store  *storetest.Memory
	held   atomic.Pointer[chan struct{}] // operations of the store wait for it; nil: they do not
	stop   context.CancelFunc
	ended  chan error
}

// start runs a service of all protocols with a store, on listeners of TCP or in memory. Sequences
// whose names begin with "orders" are there. The test fails if Run returns an error, unless the
// test takes it from ended.
func start(t *testing.T, listen func(*testing.T) net.Listener, change func(*service.Config)) *running {
	t.Helper()
	log, store := &logs{}, storetest.NewMemory()
	r := &running{t: t, log: log.String, store: store, ended: make(chan error, 1)}
	store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
		if wait := r.held.Load(); wait != nil {
			select {
			case <-*wait:
			case <-ctx.Done():
			}
		}
		return storetest.None
	}
	listeners := map[string]net.Listener{servicetest.RESP: listen(t), servicetest.GRPC: listen(t), servicetest.HTTP: listen(t), probes: listen(t)}
	r.dial = func(ctx context.Context, name string) (net.Conn, error) {
		if p, ok := listeners[name].(*pipes); ok {
			return p.dial(ctx)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", listeners[name].Addr().String())
	}
	c := service.Config{
		Store: store, RESP: listeners[servicetest.RESP], GRPC: listeners[servicetest.GRPC], HTTP: listeners[servicetest.HTTP], Probes: listeners[probes],
		Create: []service.CreateRule{{Prefix: "orders"}}, Logger: log.logger(),
		MaxConnectionAge: 8760 * time.Hour,
	}
	if change != nil {
		change(&c)
	}
	if c.Generator == nil {
		c.Generator = newGenerator(t)
	}
	var err error
	r.Server, err = service.New(c)
	require.NoError(t, err)
	r.config = c
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	go func() { r.ended <- r.Run(ctx); close(r.ended) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-r.ended)
	})
	return r
}

// caller returns a caller of a protocol, until the test ends.
func (r *running) caller(protocol, token string) servicetest.Caller {
	c := servicetest.NewCaller(protocol, r.dial, token)
	r.t.Cleanup(c.Close)
	return c
}

// metrics returns the metrics, read with a token.
func (r *running) metrics(token string) string {
	r.t.Helper()
	code, text := r.get(web, "/metrics", "Authorization: Bearer "+token)
	require.Equal(r.t, http.StatusOK, code, text)
	return text
}

// rpc returns a connection of gRPC.
func (r *running) rpc(options ...grpc.DialOption) *grpc.ClientConn {
	c, err := grpc.NewClient("passthrough:///service", append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.dial(ctx, servicetest.GRPC) }))...)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// connect connects to a listener, and sends a text meanwhile.
func (r *running) connect(name, send string) net.Conn {
	r.t.Helper()
	c, err := r.dial(r.t.Context(), name)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = c.Close() })
	if send != "" { // a pipe tells its reader of an empty text
		go func() { _, _ = io.WriteString(c, send) }() // until the server reads it, or closes the connection
	}
	return c
}

// request makes a request of HTTP on a connection of its own, with headers, an empty text, and a body.
func (r *running) request(name, method, target string, more ...string) (*http.Response, string) {
	r.t.Helper()
	c := r.connect(name, method+" "+target+" HTTP/1.1\r\nConnection: close\r\n"+strings.Join(more, "\r\n"))
	defer c.Close()
	response, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	require.NoError(r.t, err, "%s %s", method, target)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	return response, string(body)
}

// get returns the status and the body of an answer.
func (r *running) get(name, path string, headers ...string) (int, string) {
	r.t.Helper()
	response, body := r.request(name, "GET", path, append(headers, "Host: localhost", "", "")...)
	return response.StatusCode, body
}

// bubble runs a test in fake time. It begins in a year that the default layout has.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)))
		f(t)
	})
}

// each calls f for each protocol at the same time, and returns when all have returned.
func each(f func(protocol string)) {
	var all sync.WaitGroup
	for _, protocol := range servicetest.Protocols {
		all.Go(func() { f(protocol) })
	}
	all.Wait()
}

// lines returns the lines of a log that have a text.
func lines(log, text string) (found []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// four is a generator of four IDs in a second, whose callers wait for the next.
func four(t *testing.T, strategy strategies.Strategy) *generator.Generator {
	layout, err := snowflake.ParseLayout("time=41,node=4,sequence=2,tick=1s,epoch=2025-01-01")
	require.NoError(t, err)
	return newGenerator(t, generator.WithLayout(layout), generator.WithStrategy(strategy))
}

const (
	resp = servicetest.RESP
	rpc  = servicetest.GRPC
	web  = servicetest.HTTP
)

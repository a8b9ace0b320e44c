package service_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func dialGRPC(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///"+address, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// All three protocols serve one generator and one set of sequences, and Run leaves nothing
// behind. The test is not parallel: it looks at the goroutines of the process.
func TestRun(t *testing.T) {
	noGoroutine(t) // of another test
	store := storetest.NewMemory()
	r := start(t, func(c *service.Config) { c.Store = store })
	require.NoError(t, untilReady(r))

	redis := dial(t, r.resp)
	assert.Len(t, redis.ask(t, "ID"), 18)
	assert.Equal(t, ":1", redis.ask(t, "INCR orders"))
	web := client(t, nil)
	code, body := call(t, web, http.MethodPost, "http://"+r.http+"/v1/sequences/orders?n=2", "")
	assert.Equal(t, http.StatusOK, code, body)
	assert.Contains(t, body, `"2"`)
	connection := dialGRPC(t, r.grpc)
	answer, err := tickflakev1.NewTickflakeClient(connection).Take(t.Context(), &tickflakev1.TakeRequest{Count: 10})
	require.NoError(t, err)
	assert.NotEmpty(t, answer.GetRuns())
	assert.ErrorContains(t, r.Run(t.Context()), "Run was called before")

	r.stop()
	require.NoError(t, <-r.ended)
	require.Error(t, r.Ready())
	for _, address := range []string{r.resp, r.grpc, r.http} {
		_, err := net.Dial("tcp", address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED, address)
	}
	_, err = redis.r.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	// The numbers that were reserved and not issued were given back.
	info, err := sequence.Inspect(t.Context(), store, "orders")
	require.NoError(t, err)
	assert.EqualValues(t, 3, info.Last)

	_ = connection.Close()
	web.CloseIdleConnections()
	noGoroutine(t)
}

func untilReady(r *running) (err error) {
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if err = r.Ready(); err == nil {
			return nil
		}
	}
	return err
}

// While UnreadyFor lasts, the server says that it is not ready, and serves. Abort ends it.
func TestUnready(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *service.Config) { c.UnreadyFor = time.Hour })
	require.NoError(t, untilReady(r))
	web := client(t, nil)
	code, _ := call(t, web, http.MethodGet, "http://"+r.http+"/readyz", "")
	require.Equal(t, http.StatusOK, code)
	health := grpc_health_v1.NewHealthClient(dialGRPC(t, r.grpc))
	state, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, state.GetStatus())

	r.stop()
	require.Eventually(t, func() bool { return r.Ready() != nil }, 5*time.Second, time.Millisecond)
	code, _ = call(t, web, http.MethodGet, "http://"+r.http+"/readyz", "")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	code, _ = call(t, web, http.MethodGet, "http://"+r.http+"/livez", "")
	assert.Equal(t, http.StatusOK, code)
	state, err = health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	assert.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, state.GetStatus())
	assert.Len(t, dial(t, r.resp).ask(t, "ID"), 18, "new connections are served")
	select {
	case err := <-r.ended:
		require.Failf(t, "Run has ended", "%v", err)
	default:
	}
	r.Abort()
	require.ErrorIs(t, <-r.ended, service.ErrAborted)
}

// A request that runs is answered after the drain has begun, also the first of its connection.
func TestDrainFinishesRequests(t *testing.T) {
	t.Parallel()
	store := storetest.NewMemory()
	reading, answer := make(chan struct{}, 100), make(chan struct{})
	store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
		reading <- struct{}{}
		<-answer
		return storetest.None
	}
	r := start(t, func(c *service.Config) { c.Store, c.Timeout = store, 20*time.Second })
	got := make(chan string, 3)
	for _, ask := range []func() string{
		func() string { return dial(t, r.resp).ask(t, "INCR orders") },
		func() string {
			_, body := call(t, client(t, nil), http.MethodPost, "http://"+r.http+"/v1/sequences/orders-web", "")
			return body
		},
		func() string {
			answer, err := tickflakev1.NewTickflakeClient(dialGRPC(t, r.grpc)).Number(t.Context(), &tickflakev1.NumberRequest{Name: "orders-grpc"})
			assert.NoError(t, err)
			return answer.String()
		},
	} {
		go func() {
			answer := "none"
			defer func() { got <- answer }()
			answer = ask()
		}()
	}
	for range cap(got) {
		<-reading
	}
	r.stop()
	require.Eventually(t, func() bool { // the listener is closed
		c, err := net.Dial("tcp", r.resp)
		if err == nil {
			_ = c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}, 5*time.Second, time.Millisecond)
	close(answer)
	for range cap(got) {
		assert.Contains(t, <-got, "1")
	}
	assert.NoError(t, <-r.ended)
}

// Numbers that cannot be given back are named, and Run ends within its bound.
func TestLossIsNamed(t *testing.T) {
	t.Parallel()
	store := storetest.NewMemory()
	r := start(t, func(c *service.Config) {
		c.Store, c.DrainTimeout = store, 200*time.Millisecond
		c.Create[0].Definition.MinStep = 100
	})
	assert.Equal(t, ":1", dial(t, r.resp).ask(t, "INCR orders"))
	store.Fail(storetest.Unavailable, 1000)
	r.stop()
	err := <-r.ended
	require.ErrorIs(t, err, sequence.ErrNotGivenBack)
	assert.Contains(t, err.Error(), `"orders"`)
}

// A request that does not end in time is cut off, and the error says so.
func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	store := storetest.NewMemory()
	release := make(chan struct{})
	reading := make(chan struct{}, 100)
	store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
		reading <- struct{}{}
		<-release
		return storetest.None
	}
	r := start(t, func(c *service.Config) { c.Store, c.DrainTimeout, c.Timeout = store, 100*time.Millisecond, time.Hour })
	defer close(release)
	_, err := io.WriteString(dial(t, r.resp), "INCR orders\r\n")
	require.NoError(t, err)
	<-reading
	r.stop()
	err = <-r.ended
	require.ErrorContains(t, err, "resp: requests were cut off")
	assert.ErrorContains(t, err, "100ms")
}

// A listener that fails ends the server, in order.
func TestListenerFails(t *testing.T) {
	t.Parallel()
	var broken net.Listener
	r := start(t, func(c *service.Config) { broken = c.RESP })
	require.NoError(t, untilReady(r))
	require.NoError(t, broken.Close())
	err := <-r.ended
	require.ErrorIs(t, err, net.ErrClosed)
	assert.ErrorContains(t, err, "resp stopped serving "+r.resp)
}

// A store that fails is in the log with its cause, a few times per second. Clients do not see
// the cause.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	const cause = "10.9.8.7:5432 refused the connection"
	store := failing{storetest.NewMemory(), errors.New(cause)}
	r := start(t, func(c *service.Config) {
		c.Store = store
		c.Sequences = []sequence.Option{sequence.WithTimeout(time.Second)}
	})
	redis := dial(t, r.resp)
	const refused = 200
	for range refused {
		assert.Regexp(t, "^-LOADING the store of the sequence failed", redis.ask(t, "INCR orders"))
	}
	_, body := call(t, client(t, nil), http.MethodPost, "http://"+r.http+"/v1/sequences/orders", "")
	assert.NotContains(t, body, cause)
	_, err := tickflakev1.NewTickflakeClient(dialGRPC(t, r.grpc)).Number(t.Context(), &tickflakev1.NumberRequest{Name: "orders", Count: 1})
	assert.Equal(t, codes.Unavailable, status.Code(err))
	assert.NotContains(t, err.Error(), cause)
	r.stop()
	require.NoError(t, <-r.ended)
	lines := strings.Count(r.log.String(), `"code":"unavailable"`)
	assert.Greater(t, lines, 0)
	assert.Less(t, lines, refused/2)
	assert.Contains(t, r.log.String(), cause)
	assert.Contains(t, r.log.String(), `"suppressed":`)
	assert.Contains(t, r.log.String(), `"level":"WARN"`)
}

// failing is a store without an answer.
type failing struct {
	stores.Store
	err error
}

func (f failing) Read(context.Context, string) (stores.Cell, error) { return stores.Cell{}, f.err }

// Beyond MaxConnections a connection is closed, and a client may come back when another has gone.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *service.Config) { c.MaxConnections = 2 })
	first, second := dial(t, r.resp), dial(t, r.resp)
	assert.Len(t, first.ask(t, "ID"), 18)
	assert.Len(t, second.ask(t, "ID"), 18)
	for range 100 {
		third := dial(t, r.resp)
		_, err := third.r.ReadByte()
		assert.ErrorIs(t, err, io.EOF)
		_ = third.Close()
	}
	assert.Len(t, first.ask(t, "ID"), 18, "others are not harmed")
	_ = second.Close()
	require.Eventually(t, func() bool {
		c := dial(t, r.resp)
		defer c.Close()
		_, _ = io.WriteString(c, "ID\r\n")
		_, err := c.r.ReadByte()
		return err == nil
	}, 5*time.Second, time.Millisecond)

	var metrics string
	require.Eventually(t, func() bool {
		var code int
		code, metrics = call(t, client(t, nil), http.MethodGet, "http://"+r.http+"/metrics", "")
		return code == http.StatusOK
	}, 5*time.Second, time.Millisecond)
	assert.Regexp(t, `tickflake_service_connections_refused_total\{.*tickflake_service_protocol="resp"\} 10\d`, metrics)
	assert.Regexp(t, `tickflake_service_connections\{.*tickflake_service_protocol="resp"\} [12]\n`, metrics)
	assert.Regexp(t, `tickflake_service_connections_limit\{.*tickflake_service_protocol="grpc"\} 2\n`, metrics)
}

// Where there are clients, a connection without a token ends in time, whatever its protocol and
// its streams; strangers take no room from clients, nor from probes.
func TestStrangers(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-shop"
	r := start(t, func(c *service.Config) {
		c.Clients = []service.Client{{Name: "shop", Token: token}}
		c.MaxConnections, c.ReadTimeout = 3, time.Second
		c.Probes = listen(t)
	})
	redis := dial(t, r.resp)
	assert.Equal(t, "+OK", redis.ask(t, "AUTH "+token))
	stream, err := tickflakev1.NewTickflakeClient(dialGRPC(t, r.grpc)).Stream(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token))
	require.NoError(t, err)
	take := func() error {
		_ = stream.Send(&tickflakev1.StreamRequest{Credit: 1}) // Recv has the error
		_, err := stream.Recv()
		return err
	}
	require.NoError(t, take())
	web := dial(t, r.http)
	ids := func() {
		_, err := io.WriteString(web, "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\nContent-Length: 0\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(web.r, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, response.StatusCode)
	}
	ids()

	var strangers []*line
	for _, address := range []string{r.resp, r.http, r.grpc, r.probes} {
		for range 100 {
			strangers = append(strangers, dial(t, address))
		}
	}
	for _, address := range []string{r.http, r.probes} {
		for _, probe := range []string{"/livez", "/readyz"} {
			code, _ := call(t, client(t, nil), http.MethodGet, "http://"+address+probe, "")
			assert.Equal(t, http.StatusOK, code, "%s", address+probe)
		}
	}
	response, err := client(t, nil).Get("http://" + r.http + "/")
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.True(t, response.Close, "it could end during the next request")
	code, _ := call(t, client(t, nil), http.MethodGet, "http://"+r.probes+"/v1/status", token)
	assert.Equal(t, http.StatusNotFound, code)
	assert.Equal(t, "+OK", dial(t, r.resp).ask(t, "AUTH "+token))
	watch, err := grpc_health_v1.NewHealthClient(dialGRPC(t, r.grpc)).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	for err == nil {
		_, err = watch.Recv()
	}
	assert.Equal(t, codes.Unavailable, status.Code(err), err)
	for _, stranger := range strangers {
		_, err = io.Copy(io.Discard, stranger)
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection stays")
	}
	assert.Len(t, redis.ask(t, "ID"), 18)
	assert.NoError(t, take())
	ids()
}

// A stranger that sends no whole request, or has no token, does not delay the drain, whatever its
// protocol.
func TestStrangersDoNotDelayTheDrain(t *testing.T) {
	t.Parallel()
	const token, preface = "a-token-of-the-shop", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	const post = "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\n"
	const settings, take = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x32\x01\x04\x00\x00\x00\x01\x83\x86\x44\x1c/tickflake.v1.Tickflake/Take\x5f\x10application/grpc"
	for name, clients := range map[string][]service.Client{"tokens": {{Name: "shop", Token: token}}, "no tokens": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(c *service.Config) {
				c.Clients, c.Probes = clients, listen(t)
				c.ReadTimeout, c.DrainTimeout = time.Minute, 4*time.Second
			})
			for address, begun := range map[string][]string{
				r.resp:   {"", "*1\r\n$4\r\nPI"},
				r.grpc:   {"", preface, preface + settings, preface + settings + take},
				r.http:   {"", "GET / HT", post + "Content-Length: 5\r\n\r\n", post + "Transfer-Encoding: chunked\r\n\r\n", preface, preface + settings},
				r.probes: {"", "GET / HT", "POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"},
			} {
				for _, sent := range begun {
					_, err := io.WriteString(dial(t, address), sent)
					require.NoError(t, err)
				}
			}
			// They are accepted once another one is served.
			redis, web := dial(t, r.resp), client(t, nil)
			if clients != nil {
				require.Equal(t, "+OK", redis.ask(t, "AUTH "+token))
			}
			require.Len(t, redis.ask(t, "ID"), 18)
			code, body := call(t, web, http.MethodPost, "http://"+r.http+"/v1/ids", token)
			require.Equal(t, http.StatusOK, code, body)
			code, _ = call(t, web, http.MethodGet, "http://"+r.probes+"/livez", "")
			require.Equal(t, http.StatusOK, code)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
			_, err := tickflakev1.NewTickflakeClient(dialGRPC(t, r.grpc)).Take(ctx, &tickflakev1.TakeRequest{})
			require.NoError(t, err)
			r.stop()
			select {
			case err = <-r.ended:
				assert.NoError(t, err)
			case <-time.After(20 * time.Second):
				assert.Fail(t, "the drain waits for a stranger")
				r.Abort()
			}
		})
	}
}

// sick is a listener that fails at first.
type sick struct {
	net.Listener
	left atomic.Int64
}

func (s *sick) Accept() (net.Conn, error) {
	if s.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return s.Listener.Accept()
}

// Too few descriptors end no server, and do not flood the log.
func TestAcceptFails(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *service.Config) {
		for _, l := range []*net.Listener{&c.RESP, &c.GRPC, &c.HTTP} {
			s := &sick{Listener: *l}
			s.left.Store(4)
			*l = s
		}
	})
	assert.Len(t, dial(t, r.resp).ask(t, "ID"), 18)
	code, _ := call(t, client(t, nil), http.MethodGet, "http://"+r.http+"/livez", "")
	assert.Equal(t, http.StatusOK, code)
	_, err := tickflakev1.NewTickflakeClient(dialGRPC(t, r.grpc)).Take(t.Context(), &tickflakev1.TakeRequest{Count: 1})
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(r.log.String(), "connections cannot be accepted now"))
}

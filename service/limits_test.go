package service_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/service/servicetest"
)

// Each limit is driven through each protocol that has it: what is beyond is refused, and another client is
// served meanwhile. Package web has bodies; TestRequests has batches, numbers, bursts and rates; TestSlowPeers what is not sent to its end; TestRoom strangers; TestLongPipeline replies.
func TestLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", limit.Headers)
	raw := func(listener, format string) func(r *running, protocol string) string {
		return func(r *running, _ string) string {
			text, _ := io.ReadAll(r.connect(listener, fmt.Sprintf(format, long)))
			return string(text)
		}
	}
	for _, c := range []struct {
		limit     string
		protocols []string
		beyond    func(r *running, protocol string) string // the text of what is refused
		want      string                                   // in it
	}{
		{"connections of a client", servicetest.Protocols, func(r *running, protocol string) string {
			for range 2 {
				require.NoError(r.t, ids(1)(r.caller(protocol, shop)))
			}
			return refused(r.t, protocol, wire.Busy, ids(1)(r.caller(protocol, shop))).Text
		}, "client shop has its largest number of connections open, 2"},
		{"calls of a client", []string{rpc, web}, func(r *running, protocol string) string {
			release := r.hold()
			defer release()
			api := tickflakev1.NewTickflakeServiceClient(r.rpc())
			for n := range 2 { // of one connection, where the protocol has several on one
				go func() {
					ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+shop)
					if protocol == rpc {
						_, _ = api.Number(ctx, &tickflakev1.NumberRequest{Name: fmt.Sprint("orders", n)})
					} else {
						_, _ = r.caller(web, shop).Numbers(ctx, fmt.Sprint("orders", n), 1)
					}
				}()
			}
			synctest.Wait()
			if protocol == rpc {
				_, err := api.Take(metadata.AppendToOutgoingContext(r.t.Context(), "authorization", "Bearer "+shop), &tickflakev1.TakeRequest{})
				return err.Error()
			}
			return refused(r.t, protocol, wire.Busy, ids(1)(r.caller(protocol, shop))).Text
		}, "client shop has its largest number of c"},
		{"a command", []string{resp}, raw(resp, "*1\r\n$%[1]s"), "want a number of bytes in an argument up to 4096"},
		{"headers", []string{web}, raw(web, "GET /livez HTTP/1.1\r\nHost: localhost\r\nA: %[1]s%[1]s\r\n\r\n"), "431 Request Header Fields Too Large"},
		{"a message", []string{rpc}, func(r *running, protocol string) string {
			ctx := metadata.AppendToOutgoingContext(r.t.Context(), "authorization", "Bearer "+shop)
			_, err := tickflakev1.NewTickflakeServiceClient(r.rpc()).Number(ctx, &tickflakev1.NumberRequest{Name: strings.Repeat("a", limit.Message)})
			return fmt.Sprint(err)
		}, "received message larger than max"},
		{"streams", []string{rpc}, func(r *running, _ string) string {
			api := grpc_reflection_v1.NewServerReflectionClient(r.rpc())
			stranger, err := api.ServerReflectionInfo(r.t.Context())
			require.NoError(r.t, err)
			_, err = stranger.Recv()
			assert.Equal(r.t, codes.Unauthenticated, status.Code(err))
			open := func() grpc_reflection_v1.ServerReflection_ServerReflectionInfoClient {
				stream, err := api.ServerReflectionInfo(metadata.AppendToOutgoingContext(r.t.Context(), "authorization", "Bearer "+shop))
				require.NoError(r.t, err)
				synctest.Wait()
				return stream
			}
			silent := open()
			for range limit.Streams - 1 {
				open()
			}
			_, err = open().Recv()
			began := time.Now()
			_, late := silent.Recv()
			assert.ErrorContains(r.t, late, "did not end in time", "others have its place")
			assert.Equal(r.t, 10*time.Second, time.Since(began))
			assert.NoError(r.t, open().Send(&grpc_reflection_v1.ServerReflectionRequest{}))
			return fmt.Sprint(err)
		}, "its largest number of streams"},
	} {
		for _, protocol := range c.protocols {
			t.Run(c.limit+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					r := start(t, pipe, func(config *service.Config) {
						config.Clients = []service.Client{
							{Name: "shop", Tokens: []string{shop}, Sequences: []string{"*"}, MaxConnections: 2}, {Name: "slow", Tokens: []string{slow}},
						}
					})
					assert.Contains(t, c.beyond(r, protocol), c.want)
					assert.NoError(t, ids(1)(r.caller(protocol, slow)), "another client")
				})
			})
		}
	}
}

// A connection of HTTP or gRPC ends between requests once it has its age, so that the next may reach a new server. One of
// the Redis protocol stays, and no call fails.
func TestConnectionAge(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) { c.MaxConnectionAge = time.Minute })
		calls := make(map[string]servicetest.Caller)
		for range 10 {
			for _, protocol := range servicetest.Protocols {
				if calls[protocol] == nil {
					calls[protocol] = r.caller(protocol, "")
				}
				require.NoError(t, ids(1)(calls[protocol]), protocol)
			}
			time.Sleep(30 * time.Second)
		}
		text := r.metrics("") // by a connection of its own
		for protocol, opened := range map[string]string{resp: "1", rpc: "[3-6]", web: "[4-6]"} {
			assert.Regexp(t, fmt.Sprintf(`(?m)^tickflake_service_connections_opened_total{.*protocol="%s"} %s$`, protocol, opened), text)
		}
	})
}

// Calls whose request never comes have a time to send it, once there are many of them.
func TestCallsWithoutARequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const most, each = 1024, 100
		r := start(t, pipe, nil)
		begin := func(conn *grpc.ClientConn) grpc.ClientStream {
			stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, tickflakev1.TickflakeService_Take_FullMethodName)
			require.NoError(t, err)
			return stream
		}
		var conn *grpc.ClientConn
		for i := range most {
			if i%each == 0 {
				conn = r.rpc()
			}
			begin(conn)
		}
		synctest.Wait()
		began := time.Now()
		late := begin(conn)
		require.Equal(t, codes.Unavailable, status.Code(late.RecvMsg(&tickflakev1.TakeResponse{})))
		assert.Equal(t, 2*time.Second, time.Since(began))
		_, err := tickflakev1.NewTickflakeServiceClient(conn).Take(t.Context(), &tickflakev1.TakeRequest{})
		require.NoError(t, err)
	})
}

// exchange returns the replies to commands that end their connection.
func (r *running) exchange(in string) string {
	r.t.Helper()
	out, err := io.ReadAll(r.connect(resp, in))
	assert.NoError(r.t, err)
	return string(out)
}

// A client that sends what no client should has its error although it still sends, and nothing after
// it is carried out. TestParser has what is refused.
func TestRESPBytes(t *testing.T) {
	t.Parallel()
	r := start(t, listen, nil)
	assert.Equal(t, "-ERR Protocol error: expected '$', got \"*\"\r\n", r.exchange(strings.Repeat("*1\r\n", 100_000)+command("INCR", "orders")))
	last, err := r.caller(resp, "").Numbers(t.Context(), "orders", 1)
	require.NoError(t, err)
	assert.EqualValues(t, 1, last)
}

// Strangers, whatever they have begun, leave the clients and the probes their room, up to the limit of those that are known, and
// do not delay the drain. TestRoom has the pools.
func TestStrangers(t *testing.T) {
	t.Parallel()
	const most = 10
	const post, preface, settings = "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	const take = "\x00\x00\x39\x01\x04\x00\x00\x00\x01\x83\x86\x44\x23/tickflake.v1.TickflakeService/Take\x5f\x10application/grpc"
	for token, clients := range map[string][]service.Client{shop: {{Name: "shop", Tokens: []string{shop}, MaxConnections: 100}}, "": nil} {
		bubble(t, func(t *testing.T) {
			r := start(t, pipe, func(c *service.Config) { c.Clients, c.MaxConnections, c.ReadTimeout = clients, most, time.Minute })
			known := make(map[string]servicetest.Caller)
			for _, protocol := range servicetest.Protocols {
				known[protocol] = r.caller(protocol, token)
				require.NoError(t, ids(1)(known[protocol]))
			}
			for listener, begun := range map[string][]string{
				resp:   {"", "*1\r\n$4\r\nPI"},
				rpc:    {"", preface, preface + settings, preface + settings + take},
				web:    {"", "GET / HT", post + "Content-Length: 5\r\n\r\n", post + "Transfer-Encoding: chunked\r\n\r\n", preface, preface + settings},
				probes: append(make([]string, limit.Probes), "GET / HT", "POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"),
			} {
				for _, sent := range begun {
					stranger := r.connect(listener, sent)
					go func() { _, _ = io.Copy(io.Discard, stranger) }()
				}
			}
			for _, name := range []string{web, probes} {
				code, _ := r.get(name, "/readyz")
				assert.Equal(t, http.StatusOK, code, name)
			}
			for protocol, c := range known {
				for range most - 1 {
					require.True(t, token == "" || ids(1)(r.caller(protocol, token)) == nil, protocol)
				}
				if token != "" {
					refused(t, protocol, wire.Unavailable, ids(1)(r.caller(protocol, token)))
				}
				require.NoError(t, ids(1)(c), "%s: it stays, and the one beyond the limit goes", protocol)
			}
			if token == "" {
				for range most {
					r.connect(resp, "")
				}
				text := r.metrics("")
				assert.Regexp(t, `(?m)^tickflake_service_connections_refused_total{.*protocol="resp"} 3$`, text, "beyond the limit")
				assert.Regexp(t, `(?m)^tickflake_service_connections_refused_total{.*protocol="probes"} [2-4]$`, text, "for the room of others")
			}
			began := time.Now()
			r.stop()
			assert.NoError(t, <-r.ended)
			assert.Less(t, time.Since(began), 2*time.Second)
		})
	}
}

// A peer that is silent, slow, or does not read loses its connection in time, whatever its
// protocol.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	const read, timeout, idle, ping = 10 * time.Second, 2 * time.Second, time.Hour, 80 * time.Second
	const preface, settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	const post = "POST /v1/ids?n=1000 HTTP/1.1\r\nHost: localhost\r\n"
	for _, c := range []struct {
		protocol, name string
		send, drip     string // at once, and then in each of 99 seconds
		unread         bool   // the peer does not read
		least, most    time.Duration
	}{
		{resp, "nothing", "", "", false, idle, idle},
		{resp, "a command", command("PING"), "", false, idle, idle},
		{resp, "half a command", "*1\r\n$4\r\nPI", "", false, read, read},
		{resp, "half a command after one", command("PING") + "*1\r\n", "", false, read, read},
		{resp, "a byte now and then", "*1\r\n$99\r\n", "x", false, read, read},
		{resp, "commands, and reads nothing", command("PING"), command("PING"), true, read + 98*time.Second, read + 100*time.Second}, // counted from the last
		{rpc, "nothing", "", "", false, read, read},
		{rpc, "half a preface", preface[:10], "", false, read, read},
		{rpc, "a preface", preface, "", false, read, ping},
		{rpc, "settings, and answers no ping", preface + settings, "", false, ping, ping},
		{web, "nothing", "", "", false, read, read},
		{web, "a request", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", "", false, idle, idle},
		{web, "half a line", "POST /v1/ids HT", "", false, read, read},
		{web, "headers now and then", post, "A: b\r\n", false, read, read},
		{web, "half a preface", preface[:20], "", false, read, read},
		{web, "half a body", post + "Transfer-Encoding: chunked\r\n\r\n", "", false, read, read + timeout},
		{web, "a body now and then", post + "Transfer-Encoding: chunked\r\n\r\n", "0", false, read, read + timeout},
		{web, "a huge body", post + "Content-Length: 200000\r\n\r\n", "x", false, read, read + timeout},
		{web, "requests, and reads nothing", post + "\r\n", post + "\r\n", true, read, read + 2*timeout},
		{web, "frames of HTTP/2, and reads nothing", preface + settings, settings, true, read, read + timeout},
		{probes, "nothing", "", "", false, read, read},
	} {
		t.Run(c.protocol+" "+c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				r := start(t, pipe, func(config *service.Config) {
					config.ReadTimeout, config.Timeout, config.IdleTimeout = read, timeout, idle
				})
				conn := r.connect(c.protocol, c.send)
				began, dripped := time.Now(), make(chan struct{})
				require.NoError(t, conn.SetDeadline(began.Add(c.most+time.Minute)))
				go func() {
					defer close(dripped)
					for range 99 {
						if time.Sleep(time.Second); c.drip == "" {
							return
						}
						if _, err := io.WriteString(conn, c.drip); err != nil {
							return
						}
					}
				}()
				if c.unread {
					<-dripped
					_, err := io.WriteString(conn, "x")
					for ; err == nil; _, err = io.WriteString(conn, "x") {
						time.Sleep(time.Second)
					}
				} else {
					_, _ = io.Copy(io.Discard, conn)
				}
				took := time.Since(began)
				assert.True(t, c.least <= took && took <= c.most, "after %s", took)
				assert.NoError(t, conn.Close())
				<-dripped
			})
		})
	}
}

// A client that sends many commands before it reads gets all replies, also where it takes longer than ReadTimeout to
// send them. One that sends on without end is read no further, and cut off, which the log and the metrics tell.
func TestLongPipeline(t *testing.T) {
	t.Parallel()
	const n, steps = 100_000, 10
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) { c.ReadTimeout = time.Second })
		c := r.connect(resp, "")
		require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
		for range steps {
			time.Sleep(time.Second / 2)
			_, err := io.WriteString(c, strings.Repeat(command("INCR", "orders"), n/steps))
			require.NoError(t, err)
		}
		go func() { _, _ = io.WriteString(c, command("QUIT")) }()
		in := bufio.NewReader(c)
		for want := range n {
			line, err := in.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf(":%d\r\n", want+1), line)
		}
		rest, err := io.ReadAll(in)
		require.NoError(t, err)
		assert.Equal(t, "+OK\r\n", string(rest))

		began := time.Now()
		never := r.connect(resp, strings.Repeat(command("IDS", "10000"), 10_000))
		require.NoError(t, never.SetDeadline(began.Add(time.Minute)))
		time.Sleep(3 * time.Second) // to issue them takes a part of a second
		synctest.Wait()
		assert.Len(t, lines(r.log(), `"code":"unread"`), 1)
		assert.Regexp(t, `(?m)^tickflake_service_requests_total{.*code="unread",.*protocol="resp"} 1$`, r.metrics(""))
		found := regexp.MustCompile(`(?m)^tickflake_service_items_total{.*protocol="resp"} (.*)$`).FindStringSubmatch(r.metrics(""))
		issued, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		assert.Less(t, issued, 3e6, "of the hundred million that it asked for")
	})
}

package service_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/stores/storetest"
)

const (
	resp = servicetest.RESP
	rpc  = servicetest.GRPC
	web  = servicetest.HTTP
)

// hold makes operations of the store wait until release.
func (r *running) hold() (release func()) {
	wait := make(chan struct{})
	r.held.Store(&wait)
	return func() { close(wait) }
}

// Run serves, gives numbers back, and leaves nothing behind: synctest fails if a goroutine stays.
func TestRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, nil)
		for i, protocol := range servicetest.Protocols {
			last, err := r.caller(protocol, "").Numbers(t.Context(), "orders", 2)
			require.NoError(t, err)
			assert.EqualValues(t, 2*(i+1), last)
		}
		assert.ErrorContains(t, r.Run(t.Context()), "Run was called before")
		r.stop()
		require.NoError(t, <-r.ended)
		require.Error(t, r.Ready())
		for _, protocol := range append(servicetest.Protocols, probes) {
			_, err := r.dial(t.Context(), protocol)
			assert.Error(t, err, protocol)
		}
		info, err := sequence.Inspect(t.Context(), r.store, "orders")
		require.NoError(t, err)
		assert.EqualValues(t, 6, info.Last, "those that were reserved and not issued were given back")
	})
}

// While UnreadyFor lasts, the server says that it is not ready, and serves. Then it accepts
// nothing, and requests that run are answered, also the first of a connection.
func TestDrain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const unready = time.Minute
		r := start(t, pipe, func(c *service.Config) { c.UnreadyFor, c.Timeout = unready, time.Hour })
		health := grpc_health_v1.NewHealthClient(r.rpc())
		state := func() (all [5]string) {
			all[0] = fmt.Sprint(r.Ready() == nil)
			for i, name := range []string{web, probes} {
				code, _ := r.get(name, "/readyz")
				all[1+i] = fmt.Sprint(code)
			}
			got, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			require.NoError(t, err)
			all[3] = got.GetStatus().String()
			pong, err := io.ReadAll(r.connect(resp, "PING\r\nQUIT\r\n"))
			require.NoError(t, err)
			all[4], _, _ = strings.Cut(string(pong), " ")
			return all
		}
		synctest.Wait()
		assert.Equal(t, [5]string{"true", "200", "200", "SERVING", "+PONG\r\n+OK\r\n"}, state())
		r.stop()
		began := time.Now()
		synctest.Wait()
		assert.Equal(t, [5]string{"false", "503", "503", "NOT_SERVING", "-LOADING"}, state())
		code, _ := r.get(web, "/livez")
		assert.Equal(t, http.StatusOK, code)
		time.Sleep(unready - 100*time.Millisecond)
		each(func(protocol string) {
			_, err := r.caller(protocol, "").IDs(t.Context(), 1)
			assert.NoError(t, err, "new connections are served")
		})
		release := r.hold()
		go func() {
			time.Sleep(200 * time.Millisecond)
			for _, protocol := range servicetest.Protocols {
				_, err := r.dial(t.Context(), protocol)
				assert.Error(t, err)
			}
			release()
		}()
		each(func(protocol string) {
			last, err := r.caller(protocol, "").Numbers(t.Context(), "orders-"+protocol, 1)
			assert.NoError(t, err)
			assert.EqualValues(t, 1, last)
		})
		assert.NoError(t, <-r.ended)
		assert.InDelta(t, unready, time.Since(began), float64(time.Second), "HTTP looks for the end of requests now and then")
	})
}

// A drain that loses something, or a server that fails, says what, and ends in time.
func TestEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*running)
		is   error
		says []string
		most time.Duration
	}{
		"requests are cut off": {func(r *running) {
			r.hold()
			for _, protocol := range servicetest.Protocols {
				c := r.caller(protocol, "")
				go func() {
					last, err := c.Numbers(r.t.Context(), "orders-"+protocol, 1)
					assert.Error(r.t, err, "%s: %d", protocol, last)
				}()
			}
			synctest.Wait()
			r.stop()
		}, nil, []string{"resp: requests were cut off", "grpc: requests were cut off", "http: requests were cut off", "longer than DrainTimeout, 10s"}, 10 * time.Second},
		"numbers are lost": {func(r *running) {
			_, err := r.caller(resp, "").Numbers(r.t.Context(), "orders", 1)
			require.NoError(r.t, err)
			r.store.Fail(storetest.Unavailable)
			r.stop()
		}, sequence.ErrNotGivenBack, []string{`"orders"`}, 10 * time.Second},
		"a listener fails": {func(r *running) {
			require.NoError(r.t, r.config.RESP.Close())
		}, net.ErrClosed, []string{"resp stopped serving"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				r := start(t, pipe, func(config *service.Config) {
					config.Create[0].Definition.MinStep = 100
					config.Timeout, config.Sequences = time.Hour, []sequence.Option{sequence.WithTimeout(time.Hour)}
				})
				synctest.Wait()
				began := time.Now()
				c.end(r)
				err := <-r.ended
				synctest.Wait() // for the calls, whose callers are closed next
				require.Error(t, err)
				if c.is != nil {
					assert.ErrorIs(t, err, c.is)
				}
				for _, says := range c.says {
					assert.ErrorContains(t, err, says)
				}
				assert.LessOrEqual(t, time.Since(began), c.most)
			})
		})
	}
}

// Clients with tokens, and the probes, find room whatever strangers do. A stranger has its
// connection until the time to show a token is over. TestRoom has the limit of those that are known.
func TestLimit(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		const token, most, patience = "a-token-of-the-shop", 3, 10 * time.Second
		r := start(t, pipe, func(c *service.Config) {
			c.Clients = []service.Client{{Name: "shop", Tokens: []string{token}, MaxConnections: 100}}
			c.MaxConnections, c.ReadTimeout = most, patience
		})
		served := func(c servicetest.Caller) error { _, err := c.IDs(t.Context(), 1); return err }
		known := make(map[string]servicetest.Caller)
		for _, protocol := range servicetest.Protocols {
			known[protocol] = r.caller(protocol, token)
			require.NoError(t, served(known[protocol]))
		}
		began := time.Now()
		ended := make(chan time.Duration, 400)
		for _, name := range append(servicetest.Protocols, probes) {
			for range 100 {
				stranger := r.connect(name, "")
				go func() {
					_, _ = io.Copy(io.Discard, stranger)
					ended <- time.Since(began)
				}()
			}
		}
		synctest.Wait()
		assert.Equal(t, 64+3*100, cap(ended)-len(ended), "strangers have a pool of their own, and 64 the listener of probes")
		for _, name := range []string{web, probes} {
			for _, path := range []string{"/livez", "/readyz"} {
				code, _ := r.get(name, path)
				assert.Equal(t, http.StatusOK, code, name+path)
			}
		}
		answer, err := http.ReadResponse(bufio.NewReader(r.connect(web, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")), nil)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.True(t, answer.Close, "a connection without a token ends with its request, and not in the next")
		code, _ := r.get(probes, "/v1/status")
		assert.Equal(t, http.StatusNotFound, code)
		watch, err := grpc_health_v1.NewHealthClient(r.rpc()).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		for err == nil {
			_, err = watch.Recv()
		}
		assert.Equal(t, codes.Unavailable, status.Code(err), "the connection shows no token")
		for range cap(ended) {
			assert.LessOrEqual(t, <-ended, patience)
		}
		for protocol, c := range known {
			require.NoError(t, served(c), "%s: strangers have not moved it", protocol)
			for range most - 1 {
				require.NoError(t, served(r.caller(protocol, token)), protocol)
			}
			refused(t, protocol, wire.Unavailable, served(r.caller(protocol, token)))
			require.NoError(t, served(c), "%s: it stays, and the one beyond the limit goes", protocol)
		}
	})
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
		send, drip     string // at once, and then a byte per second
		unread         bool   // the peer does not read
		least, most    time.Duration
	}{
		{resp, "nothing", "", "", false, idle, idle},
		{resp, "a command", "PING\r\n", "", false, idle, idle},
		{resp, "half a command", "*1\r\n$4\r\nPI", "", false, read, read},
		{resp, "half a command after one", "PING\r\n*1\r\n", "", false, read, read},
		{resp, "a byte now and then", "x", strings.Repeat("x", 100), false, read, read},
		{resp, "commands, and reads nothing", "PING\r\n", "PING\r\nPING\r\nPING\r\n", true, read + 18*time.Second, read + 19*time.Second}, // counted from the last
		{rpc, "nothing", "", "", false, read, read},
		{rpc, "half a preface", preface[:10], "", false, read, read},
		{rpc, "a preface", preface, "", false, read, ping},
		{rpc, "settings, and answers no ping", preface + settings, "", false, ping, ping},
		{web, "nothing", "", "", false, read, read},
		{web, "a request", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", "", false, idle, idle},
		{web, "half a line", "POST /v1/ids HT", "", false, read, read},
		{web, "headers now and then", post, strings.Repeat("A: b\r\n", 100), false, read, read},
		{web, "half a preface", preface[:20], "", false, read, read},
		{web, "half a body", post + "Transfer-Encoding: chunked\r\n\r\n", "", false, read, read + timeout},
		{web, "a body now and then", post + "Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("0", 100), false, read, read + timeout},
		{web, "a huge body", post + "Content-Length: 200000\r\n\r\n", strings.Repeat("x", 100), false, read, read + timeout},
		{web, "requests, and reads nothing", post + "\r\n", strings.Repeat(post+"\r\n", 100), true, read, read + 2*timeout},
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
					for i := range len(c.drip) {
						time.Sleep(time.Second)
						if _, err := io.WriteString(conn, c.drip[i:i+1]); err != nil {
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
			_, err := io.WriteString(c, strings.Repeat("INCR orders\r\n", n/steps))
			require.NoError(t, err)
		}
		go func() { _, _ = io.WriteString(c, "QUIT\r\n") }()
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
		never := r.connect(resp, strings.Repeat("IDS 10000\r\n", 10_000))
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

// A client of HTTP/2 that takes no body of an answer, or reads nothing, holds its request for a
// bounded time.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	const read, timeout, target = 10 * time.Second, 2 * time.Second, "/v1/ids?n=10000"
	frame := func(kind, flags, stream byte, body string) string {
		return string([]byte{0, 0, byte(len(body)), kind, flags, 0, 0, 0, stream}) + body
	}
	// The client grants no window for the bodies of answers. The request is in HPACK.
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "\x00\x04\x00\x00\x00\x00") +
		frame(1, 5, 1, "\x83\x86\x04"+string(rune(len(target)))+target+"\x01\x09localhost")
	for _, reads := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			r := start(t, pipe, func(c *service.Config) { c.ReadTimeout, c.Timeout, c.AccessLog = read, timeout, 1 })
			conn := r.connect(web, preface)
			if reads {
				go func() { _, _ = io.Copy(io.Discard, conn) }()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			assert.Empty(t, lines(r.log(), "POST /v1/ids"), "the answer waits for the client")
			time.Sleep(read + timeout)
			synctest.Wait()
			assert.Len(t, lines(r.log(), "POST /v1/ids"), 1)
		})
	}
}

// A stream of gRPC whose client sends nothing, or reads nothing, ends in time, and by itself: the
// client may open a new one.
func TestSlowStreams(t *testing.T) {
	t.Parallel()
	const requests = 5000 // a megabyte of answers, and the flow control takes 64 KiB of them
	for name, c := range map[string]struct {
		requests int
		after    time.Duration
	}{"nothing is sent": {0, time.Hour}, "nothing is read": {requests, 10 * time.Second}} {
		bubble(t, func(t *testing.T) {
			r := start(t, pipe, nil)
			api := grpc_reflection_v1.NewServerReflectionClient(r.rpc(grpc.WithStaticStreamWindowSize(1 << 16)))
			stream, err := api.ServerReflectionInfo(t.Context())
			require.NoError(t, err)
			list := &grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for range c.requests {
					if stream.Send(list) != nil {
						return
					}
				}
			}()
			time.Sleep(c.after + time.Second)
			got := 0
			for ; err == nil; got++ {
				_, err = stream.Recv()
			}
			<-sent
			assert.Equal(t, codes.Unavailable, status.Code(err), name)
			assert.ErrorContains(t, err, "did not move in time", name)
			assert.LessOrEqual(t, got, c.requests/2+1, name)
			again, err := api.ServerReflectionInfo(t.Context())
			require.NoError(t, err)
			require.NoError(t, again.Send(list))
			_, err = again.Recv()
			assert.NoError(t, err, "others are not harmed")
		})
	}
}

// A stranger that sends no whole request, or has no token, does not delay the drain, whatever its
// protocol.
func TestStrangersDoNotDelayTheDrain(t *testing.T) {
	t.Parallel()
	const token, preface = "a-token-of-the-shop", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	const post = "POST /v1/ids HTTP/1.1\r\nHost: localhost\r\n"
	const settings, take = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x39\x01\x04\x00\x00\x00\x01\x83\x86\x44\x23/tickflake.v1.TickflakeService/Take\x5f\x10application/grpc"
	for name, clients := range map[string][]service.Client{"tokens": {{Name: "shop", Tokens: []string{token}}}, "no tokens": nil} {
		bubble(t, func(t *testing.T) {
			r := start(t, pipe, func(c *service.Config) { c.Clients, c.ReadTimeout = clients, time.Minute })
			for listener, begun := range map[string][]string{
				resp:   {"", "*1\r\n$4\r\nPI"},
				rpc:    {"", preface, preface + settings, preface + settings + take},
				web:    {"", "GET / HT", post + "Content-Length: 5\r\n\r\n", post + "Transfer-Encoding: chunked\r\n\r\n", preface, preface + settings},
				probes: {"", "GET / HT", "POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"},
			} {
				for _, sent := range begun {
					stranger := r.connect(listener, sent)
					go func() { _, _ = io.Copy(io.Discard, stranger) }()
				}
			}
			each(func(protocol string) {
				c := servicetest.NewCaller(protocol, r.dial, map[bool]string{true: token}[clients != nil])
				_, err := c.IDs(t.Context(), 1)
				assert.NoError(t, err)
				c.Close()
			})
			began := time.Now()
			r.stop()
			assert.NoError(t, <-r.ended, name)
			assert.Less(t, time.Since(began), 2*time.Second, name)
		})
	}
}

// sick is a listener that fails as it is told.
type sick struct {
	net.Listener
	fails chan syscall.Errno
}

func (s *sick) Accept() (net.Conn, error) {
	select {
	case errno := <-s.fails:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", errno)}
	default:
		return s.Listener.Accept()
	}
}

// Too few descriptors end no server, and do not flood the log. A listener that is broken does.
func TestAcceptFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		fails := make(chan syscall.Errno, 4)
		for range cap(fails) {
			fails <- syscall.EMFILE
		}
		r := start(t, pipe, func(c *service.Config) { c.RESP = &sick{c.RESP, fails} })
		each(func(protocol string) { assert.NoError(t, ids(1)(r.caller(protocol, ""))) })
		assert.Len(t, lines(r.log(), "connections cannot be accepted now"), 1)
		fails <- syscall.EINVAL
		r.connect(resp, "")
		assert.ErrorContains(t, <-r.ended, "resp stopped serving")
	})
}

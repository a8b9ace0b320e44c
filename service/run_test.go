package service_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// hold makes operations of the store wait until release.
func (r *running) hold() (release func()) {
	wait := make(chan struct{})
	r.held.Store(&wait)
	return func() { close(wait) }
}

// While UnreadyFor lasts, the server says that it is not ready, and serves. Then it accepts
// nothing, and requests that run are answered, also the first of a connection. At the end it gives numbers back, and leaves
// nothing behind: synctest fails if a goroutine stays.
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
			got, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: tickflakev1.TickflakeService_ServiceDesc.ServiceName})
			require.NoError(t, err)
			all[3] = got.GetStatus().String()
			pong, err := io.ReadAll(r.connect(resp, command("PING")+command("QUIT")))
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
		reflected, err := grpc_reflection_v1.NewServerReflectionClient(r.rpc()).ServerReflectionInfo(t.Context())
		require.NoError(t, err)
		require.NoError(t, reflected.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}))
		listed, err := reflected.Recv()
		require.NoError(t, err)
		assert.Contains(t, listed.String(), tickflakev1.TickflakeService_ServiceDesc.ServiceName)
		release := r.hold()
		go func() {
			time.Sleep(200 * time.Millisecond)
			for _, name := range append(servicetest.Protocols, probes) {
				_, err := r.dial(t.Context(), name)
				assert.Error(t, err, name)
			}
			release()
		}()
		each(func(protocol string) {
			last, err := r.caller(protocol, "").Numbers(t.Context(), "orders-"+protocol, 1)
			assert.NoError(t, err)
			assert.EqualValues(t, 1, last)
		})
		_, err = reflected.Recv()
		assert.ErrorContains(t, err, "the server is about to stop", "it delays nothing")
		assert.NoError(t, <-r.ended)
		assert.InDelta(t, unready, time.Since(began), float64(time.Second), "HTTP looks for the end of requests now and then")
		assert.ErrorContains(t, r.Run(t.Context()), "Run was called before")
		info, err := sequence.Inspect(t.Context(), r.store, "orders-"+web)
		require.NoError(t, err)
		assert.EqualValues(t, 1, info.Last, "those that were reserved and not issued were given back")
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
		err := <-r.ended
		assert.ErrorContains(t, err, "resp stopped serving")
		assert.ErrorIs(t, err, syscall.EINVAL)
	})
}

// A client that cancels its call, or goes away, frees it.
func TestCancel(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) { c.Generator, c.Timeout = four(t, strategies.Wait()), time.Hour })
		client := tickflakev1.NewTickflakeServiceClient(r.rpc())
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { _, err := client.Take(ctx, &tickflakev1.TakeRequest{Count: new(int64(10_000))}); failed <- err }()
		leaves := r.connect(web, "POST /v1/ids?n=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		cancel()
		require.NoError(t, leaves.Close())
		require.Equal(t, codes.Canceled, status.Code(<-failed))
		synctest.Wait()
		began := time.Now()
		r.stop()
		require.NoError(t, <-r.ended)
		assert.Less(t, time.Since(began), 2*time.Second)
		assert.Len(t, lines(r.log(), `"code":"canceled"`), 0, "what the client did is no line of the log")
	})
}

// A drain that cuts a client off loses no answer of a command that was carried out, although the
// client reads slowly.
func TestDrainLosesNoAnswer(t *testing.T) {
	t.Parallel()
	r := start(t, listen, func(c *service.Config) { c.Create[0].Definition.Mode = sequence.Ordered })                 // the store knows what was issued
	c := r.connect(resp, strings.Repeat(command("INCR", "orders")+command("ECHO", strings.Repeat("x", 400)), 40_000)) // more than the kernel keeps
	in := bufio.NewReader(c)
	answered := int64(0)
	var err error
	for lines := 0; err == nil; lines++ {
		var line string
		if line, err = in.ReadString('\n'); strings.HasPrefix(line, ":") {
			answered++
		}
		if lines == 100 {
			r.stop()
			time.Sleep(100 * time.Millisecond) // the client is slow
		}
	}
	assert.ErrorIs(t, err, io.EOF)
	require.NoError(t, <-r.ended)
	info, err := sequence.Inspect(t.Context(), r.store, "orders")
	require.NoError(t, err)
	assert.Equal(t, answered, info.Last)
}

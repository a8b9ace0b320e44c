package service_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

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
			text := ""
			if protocol == rpc {
				_, err := api.Take(metadata.AppendToOutgoingContext(r.t.Context(), "authorization", "Bearer "+shop), &tickflakev1.TakeRequest{})
				text = err.Error()
			} else {
				text = refused(r.t, protocol, wire.Busy, ids(1)(r.caller(protocol, shop))).Text
			}
			return text
		}, "client shop has its largest number of c"},
		{"a name", servicetest.Protocols, func(r *running, protocol string) string {
			return refused(r.t, protocol, wire.BadInput, take(strings.Repeat("a", 65), 1)(r.caller(protocol, shop))).Text
		}, "want 1 to 64"},
		{"a command", []string{resp}, raw(resp, "*1\r\n$%[1]s"), "want a number of bytes in an argument up to 4096"},
		{"a line", []string{resp}, raw(resp, "%s"), "a line of more than 4096 bytes"},
		{"headers", []string{web}, raw(web, "GET /livez HTTP/1.1\r\nHost: localhost\r\nA: %[1]s%[1]s\r\n\r\n"), "431 Request Header Fields Too Large"},
		{"a message", []string{rpc}, func(r *running, protocol string) string {
			ctx := metadata.AppendToOutgoingContext(r.t.Context(), "authorization", "Bearer "+shop)
			_, err := tickflakev1.NewTickflakeServiceClient(r.rpc()).Number(ctx, &tickflakev1.NumberRequest{Name: strings.Repeat("a", limit.Message)})
			return fmt.Sprint(err)
		}, "received message larger than max"},
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

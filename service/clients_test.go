package service_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
)

// New clients are served, and one that is gone is refused by every protocol and loses its connections in
// time, also those on which it sends nothing, while those of the others go on. What cannot be used
// changes nothing.
func TestReloadClients(t *testing.T) {
	t.Parallel()
	const stays, goes, comes, read = "a-token-that-stays", "a-token-that-goes", "a-token-that-comes", 10 * time.Second
	shares := service.Client{Name: "shares", Tokens: []string{"a-token-that-shares"}}
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) {
			c.Clients, c.ReadTimeout = []service.Client{{Name: "stays", Tokens: []string{stays}}, {Name: "goes", Tokens: []string{goes}}, shares}, read
		})
		callers := make(map[string]map[string]servicetest.Caller)
		served := func(protocol, token string) error { _, err := callers[protocol][token].IDs(t.Context(), 1); return err }
		for _, protocol := range servicetest.Protocols {
			callers[protocol] = make(map[string]servicetest.Caller)
			for _, token := range []string{stays, goes, comes} {
				callers[protocol][token] = r.caller(protocol, token)
				assert.Equal(t, token != comes, served(protocol, token) == nil, protocol)
			}
		}
		both := r.rpc() // a proxy's connection
		moves := func(token string) error {
			_, err := tickflakev1.NewTickflakeServiceClient(both).Take(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), &tickflakev1.TakeRequest{})
			return err
		}
		require.NoError(t, moves(shares.Tokens[0]))
		require.NoError(t, moves(goes))
		idle := r.connect(resp, "AUTH "+stays+"\r\nID\r\nAUTH "+goes+"\r\n")
		var answers strings.Builder
		ended := make(chan time.Time)
		go func() { _, _ = io.Copy(&answers, idle); ended <- time.Now() }()
		synctest.Wait()

		clients := []service.Client{{Name: "comes", Tokens: []string{comes}}, {Name: "stays", Tokens: []string{stays}, NoIDs: true, Metrics: true, Sequences: []string{"orders"}}, shares}
		began := time.Now()
		require.NoError(t, r.ReloadClients(func() ([]service.Client, error) { return clients, nil }))
		for _, protocol := range servicetest.Protocols {
			refused(t, protocol, map[bool]wire.Code{true: wire.Unauthenticated, false: wire.WrongToken}[protocol == resp], served(protocol, goes))
			refused(t, protocol, wire.Forbidden, served(protocol, stays))
			require.NoError(t, func() error { _, err := r.caller(protocol, comes).IDs(t.Context(), 1); return err }())
		}
		assert.Equal(t, codes.Unauthenticated, status.Code(moves(goes)))
		require.NoError(t, moves(shares.Tokens[0]))
		_, err := io.WriteString(idle, "PING\r\n")
		require.NoError(t, err)
		assert.Equal(t, read, (<-ended).Sub(began))
		assert.Contains(t, answers.String(), "\n-NOAUTH ", "any command")
		for _, protocol := range servicetest.Protocols {
			_, err := callers[protocol][stays].Numbers(t.Context(), "orders", 1)
			assert.NoError(t, err, "%s: its connection stays", protocol)
		}
		require.NoError(t, moves(shares.Tokens[0]))

		away := errors.New("the file is away")
		for want, read := range map[string]func() ([]service.Client, error){
			away.Error(): func() ([]service.Client, error) { return clients[:1], away },
			"there are 0 clients, and at the start there were 3": func() ([]service.Client, error) { return nil, nil },
			"its token has 5 bytes": func() ([]service.Client, error) {
				return []service.Client{{Name: "short", Tokens: []string{"short"}}}, nil
			},
		} {
			require.ErrorContains(t, r.ReloadClients(read), want)
			assert.Len(t, lines(r.log(), want), 1)
			assert.Equal(t, strings.HasPrefix(want, "its token"), strings.Contains(lines(r.log(), want)[0], `"client":"short"`))
			assert.Contains(t, r.metrics(stays), "\ntickflake_config_last_reload_successful 0\n")
			require.NoError(t, r.ReloadClients(func() ([]service.Client, error) { return clients, nil }))
		}
		text := r.metrics(stays)
		assert.Contains(t, text, "\ntickflake_config_last_reload_successful 1\n")
		assert.Contains(t, text, `tickflake_service_client_items_total{tickflake_service_client="stays"} 7`)
	})
}

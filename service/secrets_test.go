package service_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health/grpc_health_v1"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// The word that the errors of stores carry, as addresses and users are in real ones.
const secret = "db-7.internal"

// leaky is a store whose operations fail with an error that has the word.
type leaky struct {
	*storetest.Memory
	fails atomic.Pointer[error]
}

func (l *leaky) fail(kind error) {
	err := fmt.Errorf("dial tcp %s:5432, user root: %w", secret, kind)
	l.fails.Store(&err)
}

func (l *leaky) Read(ctx context.Context, key string) (stores.Cell, error) {
	if err := l.fails.Load(); err != nil {
		return stores.Cell{}, *err
	}
	return l.Memory.Read(ctx, key)
}

func (l *leaky) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	if err := l.fails.Load(); err != nil {
		return 0, *err
	}
	return l.Memory.Swap(ctx, key, version, value)
}

// Whatever fails in the store, no answer of any protocol names it, and the log does. Where the fleet was moved to
// another store, the server is not alive either, once its grant is used up.
func TestOnlyTheLogNamesTheStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		breaks func(t *testing.T, store *leaky)
		alive  bool
	}{
		"away":      {func(_ *testing.T, store *leaky) { store.fail(stores.Transient) }, true},
		"permanent": {func(_ *testing.T, store *leaky) { store.fail(stores.Permanent) }, true},
		"odd":       {func(_ *testing.T, store *leaky) { store.fail(io.ErrNoProgress) }, true},
		"damaged":   {func(_ *testing.T, store *leaky) { store.fail(stores.ErrDamaged) }, true},
		"moved": {func(t *testing.T, store *leaky) {
			_, err := lease.EndFleet(t.Context(), store.Memory, 0, 1023, "etcd://"+secret)
			require.NoError(t, err)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				store := &leaky{Memory: storetest.NewMemory()}
				require.NoError(t, lease.SetFleet(t.Context(), store, lease.Fleet{To: 1023}))
				keeper, err := lease.Claim(t.Context(), store, lease.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				gen, err := generator.New(generator.WithLease(keeper))
				require.NoError(t, err)
				t.Cleanup(func() { _ = gen.Close() }) // it cannot release its number
				r := start(t, pipe, func(c *service.Config) { c.Store, c.Generator = store, gen })
				c.breaks(t, store)
				time.Sleep(10 * time.Minute) // the grant is used up
				var shown string
				for _, protocol := range servicetest.Protocols {
					for _, ask := range []func(servicetest.Caller) error{ids(1), take("orders", 1)} {
						if err := ask(r.caller(protocol, "")); err != nil {
							shown += err.Error() + "\n"
						}
					}
				}
				alive, body := r.get(web, "/livez")
				assert.Equal(t, c.alive, alive == http.StatusOK)
				shown += body
				for _, path := range []string{"/readyz", "/v1/status", "/v1/sequences/orders"} {
					_, body := r.get(web, path)
					shown += body
				}
				info := r.connect(resp, "INFO\r\nGET orders\r\nQUIT\r\n")
				text, err := io.ReadAll(bufio.NewReader(info))
				require.NoError(t, err)
				shown += string(text)
				conn := r.rpc()
				_, err = tickflakev1.NewTickflakeServiceClient(conn).GetSequence(t.Context(), &tickflakev1.GetSequenceRequest{Name: "orders"})
				shown += fmt.Sprint(err)
				health, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
				require.NoError(t, err)
				assert.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, health.Status)
				assert.NotContains(t, shown, secret)
				assert.Contains(t, r.log(), secret)
			})
		})
	}
}

package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

// answer is what any path can answer.
type answer struct {
	ID    string
	IDs   []string
	Ready bool
	Node  int64
	Live  bool
	Error string
}

func ask(t *testing.T, h http.Handler, method, path, body string) (*http.Response, answer) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	res := w.Result()
	return res, read(t, res)
}

func read(t *testing.T, res *http.Response) (a answer) {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "application/json", res.Header.Get("Content-Type"), "%s", body)
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	require.NoError(t, json.Unmarshal(body, &a), "%s", body)
	return a
}

// timeout is how long a request may wait. It is in the machine's time, so it is long
// enough for one that is held up.
const timeout = time.Second

// leased is a service on a store and a clock that the test rules.
func leased(t *testing.T, clock *clocktest.Virtual, store stores.Store, strategy strategies.Strategy, options ...lease.Option) (*lease.Keeper, http.Handler) {
	t.Helper()
	options = append([]lease.Option{lease.WithClock(clock), lease.WithPolling(), lease.WithWindow(30 * time.Second)}, options...)
	keeper, err := lease.Claim(t.Context(), store, options...)
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(keeper), generator.WithStrategy(strategy))
	require.NoError(t, err)
	return keeper, (&service{gen: gen, batchLimit: 100, timeout: timeout}).handler()
}

// A process that had to have a certain node number, and lost it, must be restarted,
// but not before it has used up what it was granted.
func TestNodeTaken(t *testing.T) {
	clock := clocktest.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	store := storetest.NewMemory()
	keeper, h := leased(t, clock, store, strategies.Reject(), lease.WithNode(lease.NodeNumber(7)))
	_, other := leased(t, clock, store.Client(), strategies.BorrowUpTo(time.Minute), lease.WithNode(lease.NodeNumber(7)))

	clock.Advance(11 * time.Second)
	keeper.Poll(t.Context())
	require.ErrorIs(t, keeper.Err(), lease.ErrLost)
	for _, path := range []string{"/livez", "/readyz"} {
		res, _ := ask(t, h, "GET", path, "")
		assert.Equal(t, 200, res.StatusCode, path)
	}
	res, _ := ask(t, h, "POST", "/id", "")
	assert.Equal(t, 200, res.StatusCode)

	clock.Advance(20 * time.Second)
	for _, path := range []string{"/livez", "/readyz"} {
		res, _ := ask(t, h, "GET", path, "")
		assert.Equal(t, 503, res.StatusCode, path)
	}
	res, _ = ask(t, h, "POST", "/id", "")
	assert.Equal(t, 503, res.StatusCode)
	res, _ = ask(t, other, "GET", "/livez", "")
	assert.Equal(t, 200, res.StatusCode)
}

// What the store says is not for the client.
func TestAnswersDoNotTellWhereTheStoreIs(t *testing.T) {
	_, _, message := explain(&generator.GrantError{Err: errors.New("dial tcp 10.1.2.3:2379: refused")})
	assert.NotContains(t, message, "10.1.2.3")
}

// hourly returns a generator that has issued the only ID of the hour, which does not
// end.
func hourly(t *testing.T, strategy strategies.Strategy) *generator.Generator {
	t.Helper()
	layout, err := snowflake.ParseLayout("time=40,node=10,sequence=0,tick=1h,epoch=2025-01-01T00:00:00Z")
	require.NoError(t, err)
	clock := clocktest.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	gen, err := generator.New(generator.WithNode(0), generator.WithLayout(layout), generator.WithStrategy(strategy), generator.WithClock(clock))
	require.NoError(t, err)
	_, err = gen.Next()
	require.NoError(t, err)
	return gen
}

func TestBusy(t *testing.T) {
	h := (&service{gen: hourly(t, strategies.Reject()), batchLimit: 100, timeout: time.Minute}).handler()
	for path, body := range map[string]string{"/id": "", "/ids": `{"count":2}`} {
		res, a := ask(t, h, "POST", path, body)
		require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
		after, err := strconv.Atoi(res.Header.Get("Retry-After"))
		require.NoError(t, err)
		assert.True(t, 0 < after && after <= 3600, "Retry-After: %d", after)
		assert.Contains(t, a.Error, "sequence exhausted")
	}
}

// After a crash, the node number's next time is ahead of the clock. The service is
// ready if, and only if, its strategy bridges that.
func TestReadyAfterCrash(t *testing.T) {
	for _, c := range []struct {
		strategy string
		lead     time.Duration // at which it becomes ready
	}{
		{"reject", 0},
		{"wait:10s", timeout}, // requests do not wait for longer
		{"wait", timeout},
		{"borrow:10s", 10 * time.Second},
		{"borrow:1m", 30 * time.Second},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			clock := clocktest.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			clock.AutoAdvance(true)
			store := storetest.NewMemory()
			strategy, err := strategies.Parse(c.strategy)
			require.NoError(t, err)
			leased(t, clock, store, strategies.Reject(), lease.WithNode(lease.NodeNumber(7)))
			_, h := leased(t, clock, store.Client(), strategy, lease.WithNode(lease.NodeNumber(7)))
			if c.lead < 30*time.Second {
				clock.Advance(30*time.Second - c.lead - time.Millisecond)
				res, _ := ask(t, h, "GET", "/readyz", "")
				assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
				clock.Advance(time.Millisecond)
			}
			res, _ := ask(t, h, "GET", "/readyz", "")
			assert.Equal(t, http.StatusOK, res.StatusCode)
			res, a := ask(t, h, "POST", "/id", "")
			assert.Equal(t, http.StatusOK, res.StatusCode, "%+v", a)
		})
	}
}

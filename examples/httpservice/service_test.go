package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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

func TestBadRequests(t *testing.T) {
	gen, err := generator.New(generator.WithNode(0))
	require.NoError(t, err)
	h := (&service{gen: gen, batchLimit: 100, timeout: time.Minute}).handler()
	for _, body := range []string{"", "{}", `{"count":0}`, `{"count":-1}`, `{"count":101}`, `{"count":1e99}`,
		`{"count":"2"}`, `{"count":2`, `{"count":` + strings.Repeat(" ", 2000) + "2}"} {
		res, a := ask(t, h, "POST", "/ids", body)
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, "%s", body)
		assert.Contains(t, a.Error, "from 1 to 100", "%s", body)
	}
	for _, path := range []string{"/id", "/ids"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, "GET %s may be answered from a cache", path)
	}
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

func TestRequestTimeout(t *testing.T) {
	h := (&service{gen: hourly(t, strategies.Wait()), batchLimit: 100, timeout: time.Millisecond}).handler()
	for path, body := range map[string]string{"/id": "", "/ids": `{"count":2}`} {
		res, a := ask(t, h, "POST", path, body)
		assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
		assert.Equal(t, "1", res.Header.Get("Retry-After"))
		assert.Equal(t, "no ID in time", a.Error)
	}
}

// A client that hangs up takes its request with it.
func TestClientGone(t *testing.T) {
	h := (&service{gen: hourly(t, strategies.Wait()), batchLimit: 100, timeout: time.Hour}).handler()
	entered, left := make(chan bool), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		h.ServeHTTP(w, r)
		left <- true
	}))
	defer server.Close()
	for path, body := range map[string]string{"/id": "", "/ids": `{"count":2}`} {
		ctx, hangUp := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", server.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		done := make(chan error)
		go func() {
			res, err := http.DefaultClient.Do(req)
			if err == nil {
				err = errors.Join(fmt.Errorf("answered with %s", res.Status), res.Body.Close())
			}
			done <- err
		}()
		<-entered
		hangUp()
		require.ErrorIs(t, <-done, context.Canceled)
		select {
		case <-left:
		case <-time.After(time.Minute):
			t.Fatal("the request goes on without its client")
		}
	}
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
	return keeper, (&service{gen: gen, strategy: strategy, batchLimit: 100, timeout: timeout}).handler()
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

func TestExplain(t *testing.T) {
	lead := &generator.LeadError{Cause: strategies.Behind, Lead: 90500 * time.Millisecond, Limit: time.Second}
	for _, c := range []struct {
		err    error
		status int
		after  time.Duration
	}{
		{lead, 503, 89500 * time.Millisecond},
		{&generator.LeadError{Cause: strategies.Exhausted, Lead: time.Millisecond}, 503, time.Second},
		{&generator.GrantError{Context: context.DeadlineExceeded}, 503, time.Second},
		{&generator.ContextError{Err: context.DeadlineExceeded}, 503, time.Second},
		{generator.ErrClosed, 503, time.Second},
		{&generator.EndOfTimeError{}, 500, 0},
	} {
		status, after, message := explain(fmt.Errorf("wrapped: %w", c.err))
		assert.Equal(t, c.status, status, "%T", c.err)
		assert.Equal(t, c.after, after, "%T", c.err)
		assert.NotEmpty(t, message, "%T", c.err)
	}
}

// A body that does not come is no reason to tell who is connected to whom.
func TestSlowBody(t *testing.T) {
	gen, err := generator.New(generator.WithNode(0))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer((&service{gen: gen, batchLimit: 100, timeout: time.Minute}).handler())
	server.Config.ReadTimeout = 2 * time.Second
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // what it tells is of no interest
	_, err = io.WriteString(conn, "POST /ids HTTP/1.1\r\nHost: ids\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n{")
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusContinue, res.StatusCode)
	res, err = http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	assert.Equal(t, `want {"count":N} with N from 1 to 100: the body did not arrive`, read(t, res).Error)
}

// What the store says is not for the client.
func TestAnswersDoNotTellWhereTheStoreIs(t *testing.T) {
	_, _, message := explain(&generator.GrantError{Err: errors.New("dial tcp 10.1.2.3:2379: refused")})
	assert.NotContains(t, message, "10.1.2.3")
}

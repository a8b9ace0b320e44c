package client

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		s, other := n.start(t, 1), n.start(t, 2)
		c := open(t, []*fake{s, other})
		prefer(c, 0)
		for want := range int64(3) {
			number, err := c.Number(t.Context(), "orders")
			require.NoError(t, err)
			assert.Equal(t, 2*want+1, number)
		}
		first, stride, err := c.Numbers(t.Context(), "orders", 10)
		require.NoError(t, err)
		assert.Equal(t, []int64{7, 2}, []int64{first, stride})
		number, err := c.Number(t.Context(), "orders") // it counts as Background
		require.NoError(t, err)
		assert.Equal(t, int64(27), number)
		assert.Equal(t, uint64(14), c.Stats().Numbers)
		for _, n := range []int64{0, -1, math.MinInt64} {
			_, _, err = c.Numbers(t.Context(), "orders", n)
			assert.ErrorIs(t, err, ErrRefused)
		}

		// Another server serves while the first one's store is away, and IDs are not concerned.
		s.set(func() {
			s.before = func(_ context.Context, method string) error {
				if method == "Number" {
					return status.Error(codes.Unavailable, "the store is away")
				}
				return nil
			}
		})
		number, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		assert.Equal(t, int64(1), number, "of the other server, which counts by itself")
		assert.NoError(t, c.Stats().Servers[0].Err)
		assert.True(t, c.Stats().Servers[0].Preferred)
		_, err = c.Next(t.Context())
		require.NoError(t, err)
		assert.Zero(t, other.requests("Take"))

		// An outage shorter than the timeout fails no call.
		other.fail(status.Error(codes.Unavailable, "the store is away"))
		time.AfterFunc(2*time.Second, func() { other.fail(nil) })
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		other.fail(status.Error(codes.Unavailable, "the store is away"))
		began := time.Now()
		_, err = c.Number(t.Context(), "orders")
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, `numbers of sequence "orders"`)
		assert.InDelta(t, DefaultTimeout, time.Since(began), float64(time.Second))

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		time.Sleep(time.Minute)
		_, err = c.Number(ctx, "orders")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// lying is a server that answers with a response of a test.
type lying struct {
	tickflakev1.TickflakeClient
	response *tickflakev1.NumberResponse
}

func (l lying) Number(context.Context, *tickflakev1.NumberRequest, ...grpc.CallOption) (*tickflakev1.NumberResponse, error) {
	return l.response, nil
}

func TestBadNumbers(t *testing.T) {
	t.Parallel()
	for _, response := range []*tickflakev1.NumberResponse{
		nil,
		{},
		{First: 1, Last: 3, Count: 3},
		{First: 1, Last: 3, Count: 2, Stride: 2},
		{First: 1, Last: 4, Count: 3, Stride: 1},
		{First: 1, Last: 4, Count: 3, Stride: 2},
		{First: -2, Last: 0, Count: 3, Stride: 1},
		{First: 3, Last: 1, Count: 3, Stride: -1},
		{First: 0, Last: math.MaxInt64, Count: 3, Stride: 1},
	} {
		_, err := checkNumbers(t.Context(), &server{stub: lying{response: response}}, &tickflakev1.NumberRequest{Name: "orders", Count: 3})
		assert.ErrorContains(t, err, "not valid", "%s", response)
	}
}

// TestServerOfNumbers guards that a caller who gives up does not count as a failure of the server,
// and that calls stay with the server that they failed over to.
func TestServerOfNumbers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		servers := []*fake{n.start(t, 1), n.start(t, 2)}
		c := open(t, servers)
		prefer(c, 0)
		servers[0].set(func() {
			servers[0].before = func(ctx context.Context, _ string) error { return wait(ctx, math.MaxInt64) }
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.Number(ctx, "orders")
		assert.ErrorIs(t, err, context.Canceled)
		assert.Zero(t, c.Stats().Failures)
		servers[0].fail(nil)
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		assert.Zero(t, servers[1].requests("Number"))

		servers[0].fail(status.Error(codes.Unavailable, "away"))
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		servers[0].fail(nil)
		time.Sleep(time.Minute)
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		assert.Equal(t, 2, servers[1].requests("Number"))
	})
}

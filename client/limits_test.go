package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/tickflake/tickflake/snowflake"
)

// A name that no sequence has is refused without a request: a server that cannot read it would seem to fail.
func TestBadNames(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		for _, name := range []string{"", ".", "Orders", "a b", "\xff", string(make([]byte, 65))} {
			_, err := c.Number(t.Context(), name)
			require.ErrorIs(t, err, ErrRefused, "%q", name)
		}
		assert.Zero(t, s[0].asked("Number"))
		_, err := c.Number(t.Context(), "orders.2027_a-1")
		require.NoError(t, err)
	})
}

// A server whose limit is lower since a reload is asked for its limits again, and no call fails.
func TestLoweredBatch(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		ids := make([]snowflake.ID, 1000)
		nextN(t, c, ids)
		s[0].set(func() { s[0].maxBatch = 7 })
		time.Sleep(2 * time.Second) // what was fetched is too old
		nextN(t, c, ids)
		assert.Equal(t, 2, s[0].asked("Describe"))
	})
}

// A delay is for requests of a size. Where a rate rejects a large one, smaller ones are asked for, the calls for one ID
// go on, and the server is not asked for large ones before the delay is over.
func TestDelayOfALargeRequest(t *testing.T) {
	virtual(t, 1, func(t *testing.T, s []*fake) {
		c := open(t, s)
		next(t, c)
		busy, err := status.New(codes.ResourceExhausted, "above its rate").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(20 * time.Second)})
		require.NoError(t, err)
		s[0].has(fault{refuse: func(n int64) error {
			if n > 100 {
				return busy.Err()
			}
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		large := make(chan error, 1)
		go func() {
			_, err := c.NextN(ctx, make([]snowflake.ID, 10_000))
			large <- err
		}()
		began := time.Now()
		for range 10 {
			time.Sleep(time.Second) // what was fetched is too old
			_, took := next(t, c)
			assert.Less(t, took, time.Second)
		}
		assert.Less(t, time.Since(began), 20*time.Second)
		require.NoError(t, <-large, "it gets them in parts")
		refused := 0
		for _, n := range s[0].counts {
			if n > 100 {
				refused++
			}
		}
		assert.LessOrEqual(t, refused, 8, "10,000, and each half")
	})
}

package service

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const shopToken = "a-token-of-the-shop"

// withShop asks for tokens.
var withShop = settings{"clients": []settings{client("shop", shopToken)}}

// TestGoRedis is about the client of most Go programs, as it comes, in both versions of the
// protocol.
func TestGoRedis(t *testing.T) {
	t.Parallel()
	for version, password := range map[int]string{0: "", 2: "", 3: shopToken} {
		change := withShop
		if password == "" {
			change = nil
		}
		ctx, addr := t.Context(), serve(t, change).RESP
		c := redis.NewClient(&redis.Options{Addr: addr, Protocol: version, Password: password})
		defer c.Close()
		assert.NoError(t, c.Ping(ctx).Err())
		text, err := c.Do(ctx, "ID").Text()
		require.NoError(t, err)
		texts, err := c.Do(ctx, "IDS", 1000).StringSlice()
		require.NoError(t, err)
		assert.Len(t, ascend(t, append([]string{text}, texts...)...), 1001)
		n, err := c.Incr(ctx, "orders").Result()
		assert.NoError(t, err)
		assert.EqualValues(t, 1, n)
		n, err = c.IncrBy(ctx, "orders", 10).Result()
		assert.NoError(t, err)
		assert.EqualValues(t, 11, n)
		granted, err := c.Get(ctx, "orders").Int64()
		assert.NoError(t, err)
		assert.GreaterOrEqual(t, granted, n)
		assert.ErrorContains(t, c.Get(ctx, "other").Err(), "there is no sequence other")
		assert.ErrorContains(t, c.Set(ctx, "a", 1, 0).Err(), `unknown command "set"`)
		_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 100 {
				p.Incr(ctx, "orders")
			}
			return nil
		})
		assert.NoError(t, err)
		n, err = c.Incr(ctx, "orders").Result()
		assert.NoError(t, err)
		assert.EqualValues(t, 112, n)
	}
	addr := serve(t, withShop).RESP
	c := redis.NewClient(&redis.Options{Addr: addr, Password: "a-token-of-nobody", MaxRetries: -1})
	defer c.Close()
	assert.ErrorContains(t, c.Ping(t.Context()).Err(), "WRONGPASS")
}

// TestRetry: clients repeat TRYAGAIN by themselves, and LOADING until they give up.
func TestRetry(t *testing.T) {
	t.Parallel()
	limit := client("shop", shopToken)
	limit["rate"], limit["burst"] = 100, 1
	limited := serve(t, settings{"clients": []settings{limit}})
	c := redis.NewClient(&redis.Options{Addr: limited.RESP, Password: shopToken, MaxRetries: 100})
	defer c.Close()
	for range 5 {
		assert.NoError(t, c.Do(t.Context(), "ID").Err())
	}
	s := serve(t, settings{"request-timeout": "1s"})
	c = redis.NewClient(&redis.Options{Addr: s.RESP, MaxRetries: 3, MinRetryBackoff: -1, MaxRetryBackoff: -1})
	defer c.Close()
	s.away(t, true)
	assert.ErrorContains(t, c.Incr(t.Context(), "orders").Err(), "LOADING")
	assert.Equal(t, 4, s.requests(t, "unavailable"), "one call and three repetitions")
}

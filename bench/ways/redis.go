package ways

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/bench/results"
	redisstore "github.com/tickflake/tickflake/stores/redis"
)

func redisWays() []way {
	incr := func(p place) func(context.Context, running, int) (client, error) {
		return openRedis(p, func(c *redis.Client) func(context.Context) (int64, error) {
			return func(ctx context.Context) (int64, error) { return c.Incr(ctx, "ids").Result() }
		})
	}
	return []way{{
		name: "Redis INCR, as shipped", group: results.Peers, needs: []place{redisAsShipped},
		note: "one request; a crash forgets the last numbers, which are then issued again",
		open: incr(redisAsShipped),
	}, {
		name: "Redis INCR, appendfsync always", group: results.Peers, needs: []place{redisSynced},
		note: "one request and one sync",
		open: incr(redisSynced),
	}, {
		name: "Redis INCRBY in segments of 1000, appendfsync always", group: results.Peers, needs: []place{redisSynced},
		note: "one request and one sync in 1000 IDs",
		open: openRedis(redisSynced, func(c *redis.Client) func(context.Context) (int64, error) {
			return newSegments(func(ctx context.Context, n int64) (int64, error) {
				return c.IncrBy(ctx, "segments", n).Result()
			}).Next
		}),
	}, leased("Redis", redisSynced, redisstore.Open)}
}

func openRedis(p place, next func(*redis.Client) func(context.Context) (int64, error)) func(context.Context, running, int) (client, error) {
	return func(_ context.Context, r running, _ int) (client, error) {
		c, err := r[p].Redis()
		if err != nil {
			return client{}, err
		}
		return client{next: next(c), close: c.Close}, nil
	}
}

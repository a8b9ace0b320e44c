package redis_test

import (
	"context"
	"log"

	driver "github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/redis"
)

// A program claims a node number through its own client, here one of Sentinel, and waits for a replica at each write.
func ExampleNew() {
	client := driver.NewFailoverClient(&driver.FailoverOptions{
		MasterName: "ids", SentinelAddrs: []string{"10.0.0.5:26379", "10.0.0.6:26379"}, ContextTimeoutEnabled: true,
	})
	defer client.Close()
	store, err := redis.New(client, stores.DefaultNamespace, 1)
	if err != nil {
		log.Fatal(err)
	}
	keeper, err := lease.Claim(context.Background(), store)
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close() // before the client
}

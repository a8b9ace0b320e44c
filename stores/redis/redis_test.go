package redis_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/redis"
)

// A server that refuses the connection is the cause that Open names, also after a second.
func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := stores.Open(ctx, "redis://127.0.0.1:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// Other bad URLs are tried in package stores.
func TestOpenOfBadURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"":                                 "begins with redis:// or rediss://",
		"unix://u:s3cret@/run/redis":       "begins with redis:// or rediss://",
		"redis://u:s3/cret@h":              "percent-encode",
		"redis://s3cret@h":                 "a user and no password",
		"redis://":                         "no host",
		"redis://u:cret@h/cret":            "database number",
		"redis://u:s3cret@h/x":             "database number",
		"redis://u:s3cret@h/0/1":           "URL path",
		"redis://u:s3cret@h?nonsense=1":    "unexpected option",
		"redis://u:s3cret@h?namespace=a.b": "holds '.'",
		"redis://u:s3cret@h?replicas=-1":   "replicas",
		"redis://u:s3cret@h?replicas=101":  "replicas",
		"redis://u:s3cret@h?replicas=x":    "replicas",
		// In an unusual place.
		"redis://:p@h/s3cret":              "it is about: database number",
		"redis://:p@h/0/s3cret":            "URL path",
		"redis://:p@h/s3%22cret":           "database number",
		"redis://h/s3cret":                 "database number",
		"redis://h?db=s3cret":              "database number",
		"redis://h?password=s3cret":        "unexpected option",
		"redis://h?s3cret=1":               "unexpected option",
		"redis://h?s3cret":                 "unexpected option",
		"redis://h?pool_size=s3cret":       "pool_size",
		"redis://h?pool_size=1&s3cret=":    "unexpected option",
		"redis://h?read_timeout=s3cret":    "read_timeout",
		"redis://h?read_timeout=%00s3cret": "read_timeout",
		"redis://h?pool_fifo=s3cret":       "pool_fifo",
		"rediss://h?skip_verify=s3cret":    "skip_verify",
		"redis://h?replicas=s3cret":        "replicas",
		"redis://h:s3cret":                 "malformed",
	} {
		store, err := redis.Open(t.Context(), rawURL)
		require.Nil(t, store, rawURL)
		bad, ok := errors.AsType[*stores.URLError](err)
		require.True(t, ok, "%s: %v", rawURL, err)
		assert.Contains(t, bad.Error(), want, rawURL)
		for e := err; e != nil; e = errors.Unwrap(e) {
			text := fmt.Sprintf("%v %+v %#v", e, e, e)
			assert.NotContains(t, text, "s3", rawURL)
			assert.NotContains(t, text, "cret", rawURL)
		}
	}
	for _, rawURL := range []string{"redis://h", "rediss://:p@h:1/2?read_timeout=5&replicas=3&namespace=A-b", "redis://[::1]:1"} {
		store, err := redis.Open(t.Context(), rawURL)
		require.NoError(t, err, rawURL)
		require.NoError(t, store.Close())
		require.NoError(t, store.Close(), "again")
	}
}

func TestNewOfBadThings(t *testing.T) {
	client := driver.NewClient(&driver.Options{})
	defer func() { _ = client.Close() }()
	_, err := redis.New(client, "a b")
	assert.ErrorContains(t, err, "namespace \"a b\"")
	for _, n := range []int{-1, 101} {
		_, err = redis.New(client, "a", redis.WithReplicas(n))
		assert.EqualError(t, err, fmt.Sprintf("redis.WithReplicas(%d): want 0 to 100", n))
	}
	_, err = redis.New(client, "a", redis.WithReplicas(1), nil)
	assert.EqualError(t, err, "redis.New: option 2 of 2 is nil")
	_, err = redis.New(nil, "a")
	assert.Error(t, err)
	_, err = redis.New((*driver.Client)(nil), "a")
	assert.Error(t, err)
	ring := driver.NewRing(&driver.RingOptions{})
	defer func() { _ = ring.Close() }()
	_, err = redis.New(ring, "a")
	assert.ErrorContains(t, err, "Ring")
}

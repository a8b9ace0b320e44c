//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/snowflake"
)

// caller asks the servers of a fleet, and another one when one fails.
type caller interface {
	// ids returns n IDs in the order of the answer. source names the origin of IDs that
	// ascend.
	ids(ctx context.Context, n int) (ids []int64, source string, err error)
	// numbers returns the first of n numbers in a row.
	numbers(ctx context.Context, name string, n int64) (int64, error)
	// class names the kind of an error, and reports whether a call may fail with it.
	class(err error) (name string, allowed bool)
	io.Closer
}

// goClient is the Go client. All its IDs ascend.
type goClient struct{ *client.Client }

func (c goClient) ids(ctx context.Context, n int) ([]int64, string, error) {
	ids := make([]snowflake.ID, n)
	var err error
	if n == 1 {
		ids[0], err = c.Next(ctx)
	} else {
		err = c.NextN(ctx, ids)
	}
	if err != nil {
		return nil, "", err
	}
	values := make([]int64, n)
	for i, id := range ids {
		values[i] = int64(id)
	}
	return values, "", nil
}

func (c goClient) numbers(ctx context.Context, name string, n int64) (int64, error) {
	first, stride, err := c.Numbers(ctx, name, n)
	if err == nil && stride != 1 {
		err = fmt.Errorf("the stride is %d, want 1", stride)
	}
	return first, err
}

func (c goClient) class(err error) (string, bool) {
	switch {
	case errors.Is(err, client.ErrBusy):
		return "client.ErrBusy", true
	case errors.Is(err, client.ErrUnavailable) && strings.Contains(err.Error(), "check the clocks of the servers"):
		return "client.ErrUnavailable, clocks apart", true // the order goes before the call
	case errors.Is(err, client.ErrUnavailable):
		return "client.ErrUnavailable", true
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline of the call", true
	}
	return "other: " + err.Error(), false
}

// redisClient is an ordinary Redis client of each server, with one connection. It is for one
// goroutine.
type redisClient struct {
	servers     []*redis.Client
	at          int // the server that is asked first
	calls       int
	connections []int // of each server, so far
	layout      snowflake.Layout
}

// openRedis makes a client of servers at these addresses, without connecting to them.
func openRedis(addresses []string) *redisClient {
	c := &redisClient{connections: make([]int, len(addresses)), layout: snowflake.Default()}
	for i, a := range addresses {
		c.servers = append(c.servers, redis.NewClient(&redis.Options{Addr: a, MaxRetries: -1, PoolSize: 1, DialerRetries: 1,
			DialTimeout: time.Second, ReadTimeout: 3 * time.Second, ContextTimeoutEnabled: true,
			OnConnect: func(context.Context, *redis.Conn) error { c.connections[i]++; return nil }}))
	}
	return c
}

const (
	// The servers are asked twice, and there is a moment between: the network may be back.
	redisRounds = 2
	redisPause  = 50 * time.Millisecond
	// After so many calls the next server is asked first, so that all have work.
	redisStay = 20
)

func (c *redisClient) ask(ctx context.Context, request func(*redis.Client) error) (err error) {
	if c.calls++; c.calls%redisStay == 0 {
		c.at = (c.at + 1) % len(c.servers)
	}
	for i := range redisRounds * len(c.servers) {
		if i > 0 && i%len(c.servers) == 0 {
			select {
			case <-time.After(redisPause):
			case <-ctx.Done():
			}
		}
		if err = request(c.servers[c.at]); err == nil || ctx.Err() != nil {
			return err
		}
		c.at = (c.at + 1) % len(c.servers)
	}
	return err
}

func (c *redisClient) ids(ctx context.Context, n int) (ids []int64, source string, err error) {
	var texts []string
	if err := c.ask(ctx, func(r *redis.Client) (err error) { texts, err = r.Do(ctx, "IDS", n).StringSlice(); return err }); err != nil {
		return nil, "", err
	}
	for _, text := range texts {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, "", err
		}
		ids = append(ids, id)
	}
	if len(ids) != n {
		return nil, "", fmt.Errorf("asked for %d IDs and got %d", n, len(ids))
	}
	parts, err := c.layout.Decode(snowflake.ID(ids[0]))
	return ids, fmt.Sprintf("server %d connection %d node %d", c.at, c.connections[c.at], parts.Node), err
}

func (c *redisClient) numbers(ctx context.Context, name string, n int64) (last int64, err error) {
	err = c.ask(ctx, func(r *redis.Client) (err error) { last, err = r.IncrBy(ctx, name, n).Result(); return err })
	return last - n + 1, err
}

func (c *redisClient) class(err error) (string, bool) {
	var answer redis.Error
	var network net.Error
	switch {
	case errors.As(err, &answer):
		word, _, _ := strings.Cut(answer.Error(), " ")
		if word == "LOADING" || word == "TRYAGAIN" {
			return word, true
		}
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, redis.ErrPoolTimeout):
		return "timeout", true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
		return "connection", true
	}
	return "other: " + err.Error(), false
}

func (c *redisClient) Close() error {
	var errs []error
	for _, s := range c.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

//go:build unix

package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/snowflake"
)

// Caller asks a server, or several servers, by one protocol. It connects again after an error.
// Only that of the Go client is for several goroutines.
type Caller interface {
	// IDs returns n IDs in the order of the answer.
	IDs(ctx context.Context, n int) ([]int64, error)
	// Numbers returns the first of n numbers in a row of a sequence.
	Numbers(ctx context.Context, name string, n int64) (first int64, err error)
	io.Closer
}

// Protocols makes a caller of each protocol at an address.
var Protocols = []struct {
	Name string
	At   func(*Server) string
	Open func(address string) Caller
}{
	{"go-redis", func(s *Server) string { return s.RESP }, Redis},
	{"gRPC", func(s *Server) string { return s.GRPC }, GRPC},
	{"HTTP", func(s *Server) string { return s.HTTP }, HTTP},
}

// Patience bounds a call: the machine may be busy.
const Patience = 30 * time.Second

// Refused is a server's answer that it does not serve the request now. The caller asks another
// server, or again later.
type Refused struct {
	Busy bool // the strategy or a rate has rejected it; else the server is not available
	err  error
}

func (r *Refused) Error() string { return r.err.Error() }
func (r *Refused) Unwrap() error { return r.err }

// Class names the kind of an error of a caller, and reports whether a call may fail with it
// while servers and stores are disturbed.
func Class(err error) (name string, allowed bool) {
	var refused *Refused
	var network net.Error
	switch {
	case errors.As(err, &refused) && refused.Busy:
		return "busy", true
	case errors.Is(err, client.ErrUnavailable) && strings.Contains(err.Error(), "check the clocks of the servers"):
		return "unavailable, clocks apart", true // the order goes before the call
	case errors.As(err, &refused):
		return "unavailable", true
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout(), errors.Is(err, redis.ErrPoolTimeout):
		return "timeout", true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
		return "connection", true
	}
	return "other: " + err.Error(), false
}

// goClient is the Go client.
type goClient struct{ *client.Client }

// GoClient opens the Go client of servers at these addresses of gRPC. All its IDs ascend.
func GoClient(ctx context.Context, addresses []string, options ...client.Option) (Caller, error) {
	c, err := client.Open(ctx, addresses, append([]client.Option{client.WithLogger(slog.New(slog.DiscardHandler))}, options...)...)
	if err != nil {
		return nil, err
	}
	return goClient{c}, nil
}

func (c goClient) refused(err error) error {
	if busy := errors.Is(err, client.ErrBusy); busy || errors.Is(err, client.ErrUnavailable) {
		return &Refused{busy, err}
	}
	return err
}

func (c goClient) IDs(ctx context.Context, n int) ([]int64, error) {
	ids := make([]snowflake.ID, n)
	var err error
	if n == 1 {
		ids[0], err = c.Next(ctx)
	} else {
		err = c.NextN(ctx, ids)
	}
	if err != nil {
		return nil, c.refused(err)
	}
	values := make([]int64, n)
	for i, id := range ids {
		values[i] = int64(id)
	}
	return values, nil
}

func (c goClient) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	first, stride, err := c.Client.Numbers(ctx, name, n)
	if err == nil && stride != 1 {
		err = fmt.Errorf("the stride is %d, want 1", stride)
	}
	return first, c.refused(err)
}

// Every connection that fails would be a line on standard error.
func init() { logging.Disable() }

// redisCaller is an ordinary Redis client.
type redisCaller struct{ *redis.Client }

// Redis makes a caller by go-redis, which uses one connection and repeats nothing by itself.
func Redis(address string) Caller {
	// After as many failed dials as the pool is large go-redis dials once a second only.
	const pool = 10_000
	return redisCaller{redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, PoolSize: pool, DialerRetries: 1,
		DialTimeout: time.Second, ReadTimeout: Patience, WriteTimeout: Patience, ContextTimeoutEnabled: true})}
}

func (c redisCaller) refused(err error) error {
	if err == nil {
		return nil
	}
	if word, _, _ := strings.Cut(err.Error(), " "); word == "TRYAGAIN" || word == "LOADING" {
		return &Refused{word == "TRYAGAIN", err}
	}
	return err
}

func (c redisCaller) IDs(ctx context.Context, n int) ([]int64, error) {
	if n == 1 {
		text, err := c.Do(ctx, "ID").Text()
		if err != nil {
			return nil, c.refused(err)
		}
		return integers([]string{text}, 1)
	}
	texts, err := c.Do(ctx, "IDS", n).StringSlice()
	if err != nil {
		return nil, c.refused(err)
	}
	return integers(texts, n)
}

func (c redisCaller) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	last, err := c.IncrBy(ctx, name, n).Result()
	return last - n + 1, c.refused(err)
}

// integers reads n numbers.
func integers(texts []string, n int) ([]int64, error) {
	if len(texts) != n {
		return nil, fmt.Errorf("asked for %d and got %d", n, len(texts))
	}
	values := make([]int64, n)
	for i, text := range texts {
		var err error
		if values[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// rpcCaller calls the methods of gRPC.
type rpcCaller struct {
	tickflakev1.TickflakeClient
	*grpc.ClientConn
}

// GRPC makes a caller by gRPC.
func GRPC(address string) Caller {
	// A server that is started again is soon tried.
	soon := backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: Patience}))
	if err != nil {
		panic(err) // a mistake in the options
	}
	return rpcCaller{tickflakev1.NewTickflakeClient(conn), conn}
}

// refused wraps a status that says so. A connection that fails has the status Unavailable as
// well.
func (c rpcCaller) refused(err error) error {
	switch status.Code(err) {
	case codes.ResourceExhausted:
		return &Refused{true, err}
	case codes.Unavailable:
		return &Refused{false, err}
	case codes.DeadlineExceeded:
		return errors.Join(context.DeadlineExceeded, err)
	}
	return err
}

func (c rpcCaller) IDs(ctx context.Context, n int) ([]int64, error) {
	answer, err := c.Take(ctx, &tickflakev1.TakeRequest{Count: int64(n)})
	if err != nil {
		return nil, c.refused(err)
	}
	var all []int64
	for _, run := range answer.Runs {
		for i := range run.Count {
			all = append(all, run.First+i*run.Stride)
		}
	}
	if len(all) != n {
		return nil, fmt.Errorf("asked for %d and got %d", n, len(all))
	}
	return all, nil
}

func (c rpcCaller) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	answer, err := c.Number(ctx, &tickflakev1.NumberRequest{Name: name, Count: n})
	if err != nil {
		return 0, c.refused(err)
	}
	return answer.First, nil
}

// webCaller calls HTTP.
type webCaller struct {
	address   string
	transport *http.Transport
}

// HTTP makes a caller by HTTP, with one connection.
func HTTP(address string) Caller {
	return webCaller{address, &http.Transport{MaxIdleConnsPerHost: 1}}
}

func (c webCaller) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// post makes a request, and reads the answer into a value.
func (c webCaller) post(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address+path, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: c.transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return json.Unmarshal(body, into)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if answer.Header.Get("Retry-After") == "" {
			return fmt.Errorf("status %s without Retry-After", answer.Status)
		}
		return &Refused{answer.StatusCode == http.StatusTooManyRequests, errors.New(string(body))}
	}
	return fmt.Errorf("status %s: %s", answer.Status, body)
}

func (c webCaller) IDs(ctx context.Context, n int) ([]int64, error) {
	var answer struct {
		IDs []string `json:"ids"`
	}
	if err := c.post(ctx, "/v1/ids?n="+strconv.Itoa(n), &answer); err != nil {
		return nil, err
	}
	return integers(answer.IDs, n)
}

func (c webCaller) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	var answer struct {
		First string `json:"first"`
	}
	if err := c.post(ctx, fmt.Sprintf("/v1/sequences/%s?n=%d", name, n), &answer); err != nil {
		return 0, err
	}
	first, err := integers([]string{answer.First}, 1)
	if err != nil {
		return 0, err
	}
	return first[0], nil
}

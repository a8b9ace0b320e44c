//go:build unix

package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
)

// caller asks one server over one protocol. It is for one goroutine.
type caller interface {
	ids(ctx context.Context, n int) ([]int64, error)        // in the order of the answer
	number(ctx context.Context, name string) (int64, error) // of a sequence
	close()
}

// callers makes a caller of each protocol.
var callers = map[string]func(addresses) caller{
	"raw RESP": func(a addresses) caller { return &rawCaller{addr: a.RESP} },
	"go-redis": func(a addresses) caller {
		return redisCaller{redis.NewClient(&redis.Options{Addr: a.RESP, MaxRetries: -1, PoolSize: 1, ReadTimeout: patience, WriteTimeout: patience, ContextTimeoutEnabled: true})}
	},
	"gRPC": func(a addresses) caller {
		// A server that is started again is soon tried.
		soon := backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond}
		conn, err := grpc.NewClient("passthrough:///"+a.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: patience}))
		if err != nil {
			panic(err) // a mistake in the options
		}
		return rpcCaller{conn, tickflakev1.NewTickflakeClient(conn)}
	},
	"HTTP": func(a addresses) caller {
		transport := &http.Transport{MaxIdleConnsPerHost: 1}
		return webCaller{a.HTTP, &http.Client{Transport: transport}, transport}
	},
}

// refusal is a server's answer that it does not serve the request now.
type refusal struct {
	busy bool // the strategy or a rate has rejected it; else the server is not available
	text string
}

func (r *refusal) Error() string { return r.text }

// rawCaller speaks RESP2 by itself. It connects again after an error.
type rawCaller struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
}

func (c *rawCaller) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// command sends one command, and returns its answer: a string, or an array of strings.
func (c *rawCaller) command(ctx context.Context, words ...string) (answer []string, err error) {
	if c.conn == nil {
		if c.conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", c.addr); err != nil {
			c.conn = nil
			return nil, err
		}
		c.in = bufio.NewReader(c.conn)
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.conn.SetDeadline(deadline)
	}
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	if _, err = io.WriteString(c.conn, request); err == nil {
		answer, err = readAnswer(c.in)
	}
	if _, refused := errors.AsType[*refusal](err); err != nil && !refused {
		c.close()
	}
	return answer, err
}

// readAnswer reads one answer. An error that says that the server cannot serve now is a
// [*refusal].
func readAnswer(in *bufio.Reader) ([]string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	kind, rest := line[:1], line[1:]
	switch kind {
	case "+", ":":
		return []string{rest}, nil
	case "-":
		word, _, _ := strings.Cut(rest, " ")
		if word == "TRYAGAIN" || word == "LOADING" {
			return nil, &refusal{word == "TRYAGAIN", rest}
		}
		return nil, errors.New(rest)
	case "$":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("a bulk string of length %q", rest)
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		return []string{string(text[:n])}, nil
	case "*":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("an array of length %q", rest)
		}
		var all []string
		for range n {
			one, err := readAnswer(in)
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	}
	return nil, fmt.Errorf("an answer that begins with %q", kind)
}

func (c *rawCaller) ids(ctx context.Context, n int) ([]int64, error) {
	words := []string{"ID"}
	if n > 1 {
		words = []string{"IDS", strconv.Itoa(n)}
	}
	answer, err := c.command(ctx, words...)
	if err != nil {
		return nil, err
	}
	return integers(answer, n)
}

func (c *rawCaller) number(ctx context.Context, name string) (int64, error) {
	answer, err := c.command(ctx, "INCR", name)
	if err != nil {
		return 0, err
	}
	return one(integers(answer, 1))
}

// integers reads n numbers.
func integers(texts []string, n int) ([]int64, error) {
	if len(texts) != n {
		return nil, fmt.Errorf("asked for %d and got %d", n, len(texts))
	}
	out := make([]int64, n)
	for i, text := range texts {
		var err error
		if out[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func one(all []int64, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// redisCaller is an ordinary Redis client.
type redisCaller struct{ client *redis.Client }

func (c redisCaller) close() { _ = c.client.Close() }

// redisError returns a *refusal for an answer of the server that is one.
func redisError(err error) error {
	if err == nil {
		return nil
	}
	for _, word := range []string{"TRYAGAIN", "LOADING"} {
		if strings.HasPrefix(err.Error(), word+" ") {
			return &refusal{word == "TRYAGAIN", err.Error()}
		}
	}
	return err
}

func (c redisCaller) ids(ctx context.Context, n int) ([]int64, error) {
	if n == 1 {
		text, err := c.client.Do(ctx, "ID").Text()
		if err != nil {
			return nil, redisError(err)
		}
		return integers([]string{text}, 1)
	}
	texts, err := c.client.Do(ctx, "IDS", n).StringSlice()
	if err != nil {
		return nil, redisError(err)
	}
	return integers(texts, n)
}

func (c redisCaller) number(ctx context.Context, name string) (int64, error) {
	n, err := c.client.Incr(ctx, name).Result()
	return n, redisError(err)
}

// rpcCaller calls the methods of gRPC.
type rpcCaller struct {
	conn   *grpc.ClientConn
	client tickflakev1.TickflakeClient
}

func (c rpcCaller) close() { _ = c.conn.Close() }

// rpcError returns a *refusal for a status that is one. A connection that fails has the status
// Unavailable as well.
func rpcError(err error) error {
	switch status.Code(err) {
	case codes.ResourceExhausted:
		return &refusal{true, err.Error()}
	case codes.Unavailable:
		return &refusal{false, err.Error()}
	}
	return err
}

func (c rpcCaller) ids(ctx context.Context, n int) ([]int64, error) {
	answer, err := c.client.Take(ctx, &tickflakev1.TakeRequest{Count: int64(n)})
	if err != nil {
		return nil, rpcError(err)
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

func (c rpcCaller) number(ctx context.Context, name string) (int64, error) {
	answer, err := c.client.Number(ctx, &tickflakev1.NumberRequest{Name: name, Count: 1})
	if err != nil {
		return 0, rpcError(err)
	}
	return answer.First, nil
}

// webCaller calls HTTP.
type webCaller struct {
	addr      string
	client    *http.Client
	transport *http.Transport
}

func (c webCaller) close() { c.transport.CloseIdleConnections() }

// post makes a request, and reads the answer into a value.
func (c webCaller) post(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.addr+path, nil)
	if err != nil {
		return err
	}
	answer, err := c.client.Do(request)
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
		return &refusal{answer.StatusCode == http.StatusTooManyRequests, string(body)}
	}
	return fmt.Errorf("status %s: %s", answer.Status, body)
}

func (c webCaller) ids(ctx context.Context, n int) ([]int64, error) {
	var answer struct {
		IDs []string `json:"ids"`
	}
	if err := c.post(ctx, "/v1/ids?n="+strconv.Itoa(n), &answer); err != nil {
		return nil, err
	}
	return integers(answer.IDs, n)
}

func (c webCaller) number(ctx context.Context, name string) (int64, error) {
	var answer struct {
		First string `json:"first"`
	}
	if err := c.post(ctx, "/v1/sequences/"+name, &answer); err != nil {
		return 0, err
	}
	return one(integers([]string{answer.First}, 1))
}

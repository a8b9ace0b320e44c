// Package servicetest asks a service as its clients do. The tests of package service use it, and
// others against "tickflake serve".
//
// You need these names:
//
//   - [NewCaller]: asks over a protocol.
//   - [NewAuthority]: makes certificates.
package servicetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/snowflake"
)

// The protocols.
const (
	RESP = "resp"
	GRPC = "grpc"
	HTTP = "http"
)

// Protocols are all protocols.
var Protocols = []string{RESP, GRPC, HTTP}

// Caller asks a service over one protocol, by one connection, which its first call opens, and the next one after an
// error. It is for one goroutine at a time. The errors of refused calls are of type [*Refusal].
type Caller interface {
	IDs(ctx context.Context, n int64) ([]snowflake.ID, error)                  // in the order of the answer
	Numbers(ctx context.Context, name string, n int64) (last int64, err error) // the last of n in a row
	Close()
}

// Refusal is the answer to a call that is not served.
type Refusal struct {
	Word  string        // of the protocol: see [Word]
	Text  string        // what the service says
	After time.Duration // when to repeat the call, from 0 on; RESP names none
}

func (r *Refusal) Error() string { return r.Word + ": " + r.Text }

// Word returns how a protocol says a code by which the service counts and logs refusals.
func Word(protocol string, code wire.Code) string {
	switch words := code.Words(); protocol {
	case RESP:
		return words.RESP
	case GRPC:
		return codes.Code(words.GRPC).String()
	default:
		return fmt.Sprintf("%d %s", words.HTTP, words.Name)
	}
}

// Dial connects a caller.
type Dial = func(ctx context.Context, protocol string) (net.Conn, error)

// patience bounds a call. Only a test that fails reaches it.
const patience = time.Minute

// NewCaller returns a caller of a protocol, which gives a token with each request unless it is
// empty.
func NewCaller(protocol string, dial Dial, token string) Caller {
	switch protocol {
	case RESP:
		return &respCaller{dial: dial, token: token}
	case GRPC:
		const soon = 10 * time.Millisecond // a server that was killed is back
		conn, err := grpc.NewClient("passthrough:///service", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: soon, Multiplier: 1, MaxDelay: soon}, MinConnectTimeout: patience}),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, GRPC) }))
		if err != nil {
			panic(err) // a mistake in the options
		}
		return &grpcCaller{conn, tickflakev1.NewTickflakeServiceClient(conn), token}
	case HTTP:
		connect := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, HTTP) }
		return &httpCaller{&http.Transport{DialContext: connect, DialTLSContext: connect, ForceAttemptHTTP2: true}, token}
	}
	panic("no protocol " + protocol)
}

// respCaller speaks the Redis protocol by itself.
type respCaller struct {
	dial  Dial
	token string
	conn  net.Conn
	in    *bufio.Reader
}

// command sends a command and returns its answer: one text, or several.
func (c *respCaller) command(ctx context.Context, words ...string) (texts []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		if _, refused := err.(*Refusal); err != nil && !refused {
			c.Close()
		}
	}()
	if c.conn == nil {
		if c.conn, err = c.dial(ctx, RESP); err != nil {
			return nil, err
		}
		c.in = bufio.NewReader(c.conn)
		if c.token != "" {
			if _, err := c.command(ctx, "AUTH", c.token); err != nil {
				c.Close()
				return nil, err
			}
		}
	}
	conn := c.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() {
			c.Close()
		}
	}()
	if _, err := io.WriteString(conn, Command(words...)); err != nil {
		return nil, err
	}
	return ReadReply(c.in)
}

// Command returns a command of the Redis protocol, as clients send it.
func Command(words ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return text
}

// ReadReply reads a reply of the Redis protocol, in either version: a text, several, or an error, which is a
// [*Refusal]. It returns [io.EOF] where none begins.
func ReadReply(in *bufio.Reader) (texts []string, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		if line != "" {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	rest, ended := strings.CutSuffix(line[1:], "\r\n")
	n, failed := strconv.Atoi(rest)
	switch kind := line[0]; {
	case !ended || strings.Contains(rest, "\r"):
	case kind == '+', kind == ':' && failed == nil, kind == '_' && rest == "", kind == '$' && n == -1:
		return []string{rest}, nil
	case kind == '-':
		word, text, _ := strings.Cut(rest, " ")
		return nil, &Refusal{Word: word, Text: text}
	case failed != nil || n < 0:
	case kind == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(in, text); err != nil || string(text[n:]) != "\r\n" {
			return nil, fmt.Errorf("a text of %d bytes does not end there: %w", n, err)
		}
		return []string{string(text[:n])}, nil
	case kind == '%', kind == '*':
		if kind == '%' {
			n *= 2
		}
		for range n {
			text, err := ReadReply(in)
			if err != nil {
				return nil, fmt.Errorf("in an array: %w", err)
			}
			texts = append(texts, text...)
		}
		return texts, nil
	}
	return nil, fmt.Errorf("the reply begins with %q", line)
}

func (c *respCaller) IDs(ctx context.Context, n int64) ([]snowflake.ID, error) {
	texts, err := c.command(ctx, "IDS", strconv.FormatInt(n, 10))
	if err != nil {
		return nil, err
	}
	return parse(texts)
}

func (c *respCaller) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	texts, err := c.command(ctx, "INCRBY", name, strconv.FormatInt(n, 10))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.Join(texts, " "), 10, 64)
}

func (c *respCaller) Close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func parse(texts []string) (ids []snowflake.ID, err error) {
	for _, text := range texts {
		id, err := snowflake.Parse(text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// grpcCaller calls the methods of gRPC.
type grpcCaller struct {
	conn  *grpc.ClientConn
	api   tickflakev1.TickflakeServiceClient
	token string
}

// call makes a call, and reads the status of one that failed.
func call[In, Out any](ctx context.Context, c *grpcCaller, method func(context.Context, In, ...grpc.CallOption) (Out, error), in In) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
	}
	out, err := method(ctx, in)
	if err == nil {
		return out, nil
	}
	s := status.Convert(err)
	r := &Refusal{Word: s.Code().String(), Text: s.Message()}
	for _, detail := range s.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			r.After = retry.RetryDelay.AsDuration()
		}
	}
	return out, r
}

func (c *grpcCaller) IDs(ctx context.Context, n int64) (ids []snowflake.ID, err error) {
	answer, err := call(ctx, c, c.api.Take, &tickflakev1.TakeRequest{Count: &n})
	for _, r := range answer.GetRuns() {
		run := snowflake.Run{First: snowflake.ID(r.First), Count: r.Count, Stride: r.Stride}
		for i := range run.Count {
			ids = append(ids, run.At(i))
		}
	}
	return ids, err
}

func (c *grpcCaller) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	answer, err := call(ctx, c, c.api.Number, &tickflakev1.NumberRequest{Name: name, Count: &n})
	return answer.GetLast(), err
}

func (c *grpcCaller) Close() { _ = c.conn.Close() }

// httpCaller makes requests of HTTP.
type httpCaller struct {
	*http.Transport
	token string
}

// post makes a request, and reads its answer into a value, or as a problem.
func (c *httpCaller) post(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A connection of TLS comes from DialTLSContext, which the scheme https asks.
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://localhost"+path, nil)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode == http.StatusOK {
		return json.Unmarshal(body, into)
	}
	var problem struct {
		Code, Detail string
		After        float64 `json:"retry_after_seconds"`
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		return fmt.Errorf("status %s: %s", answer.Status, body)
	}
	seconds, _ := strconv.ParseFloat(answer.Header.Get("Retry-After"), 64)
	if seconds < problem.After || seconds >= problem.After+1 {
		return fmt.Errorf("Retry-After is %g, and retry_after_seconds %g", seconds, problem.After)
	}
	return &Refusal{fmt.Sprintf("%d %s", answer.StatusCode, problem.Code), problem.Detail, time.Duration(problem.After * float64(time.Second))}
}

func (c *httpCaller) IDs(ctx context.Context, n int64) ([]snowflake.ID, error) {
	var answer struct{ IDs []string }
	if err := c.post(ctx, "/v1/ids?n="+strconv.FormatInt(n, 10), &answer); err != nil {
		return nil, err
	}
	return parse(answer.IDs)
}

func (c *httpCaller) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	var answer struct{ Last string }
	if err := c.post(ctx, "/v1/sequences/"+name+"?n="+strconv.FormatInt(n, 10), &answer); err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer.Last, 10, 64)
}

func (c *httpCaller) Close() { c.CloseIdleConnections() }

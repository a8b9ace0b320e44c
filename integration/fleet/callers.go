//go:build unix

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/service/servicetest"
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
	At   func(*program.Server) string
	Open func(address string) Caller
}{
	{"RESP", func(s *program.Server) string { return s.RESP }, open(servicetest.RESP)},
	{"gRPC", func(s *program.Server) string { return s.GRPC }, open(servicetest.GRPC)},
	{"HTTP", func(s *program.Server) string { return s.HTTP }, open(servicetest.HTTP)},
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
	case errors.Is(err, lease.ErrLost):
		return "lost", false
	case errors.Is(err, lease.ErrMoved):
		return "moved", true
	case errors.Is(err, generator.ErrNotGranted):
		return "not granted", true
	case errors.Is(err, generator.ErrBehind), errors.Is(err, generator.ErrExhausted):
		return "behind", true
	case errors.As(err, &refused) && refused.Busy:
		return "busy", true
	case errors.Is(err, client.ErrUnavailable) && strings.Contains(err.Error(), "check the clocks of the servers"):
		return "unavailable, clocks apart", true // the order goes before the call
	case errors.As(err, &refused):
		return "unavailable", true
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout", true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network),
		strings.HasSuffix(err.Error(), "server closed idle connection"): // for which net/http has no value
		return "connection", true
	}
	return "other: " + err.Error(), false
}

// goClient is the Go client.
type goClient struct{ *client.Client }

// openGoClient opens the Go client of servers at these addresses of gRPC. All its IDs ascend.
func openGoClient(ctx context.Context, addresses []string, options ...client.Option) (Caller, error) {
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
		_, err = c.NextN(ctx, ids)
	}
	return numbers(ids), c.refused(err)
}

func (c goClient) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	first, stride, err := c.Client.Numbers(ctx, name, n)
	if err == nil && stride != 1 {
		err = fmt.Errorf("the stride is %d, want 1", stride)
	}
	return first, c.refused(err)
}

// caller is that of a protocol.
type caller struct {
	servicetest.Caller
	protocol string
}

func open(protocol string) func(address string) Caller {
	return func(address string) Caller {
		dial := func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
		return caller{servicetest.NewCaller(protocol, dial, ""), protocol}
	}
}

// error returns the error of a call.
func (c caller) error(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	if refusal, ok := errors.AsType[*servicetest.Refusal](err); ok {
		switch busy := servicetest.Word(c.protocol, wire.Busy); refusal.Word {
		case busy, servicetest.Word(c.protocol, wire.Unavailable): // a connection of gRPC that fails says so as well
			return &Refused{refusal.Word == busy, err}
		}
	}
	return err
}

func (c caller) IDs(ctx context.Context, n int) ([]int64, error) {
	ids, err := c.Caller.IDs(ctx, int64(n))
	if err == nil && len(ids) != n {
		err = fmt.Errorf("asked for %d and got %d", n, len(ids))
	}
	return numbers(ids), c.error(ctx, err)
}

// numbers are IDs as a ledger has them.
func numbers(ids []snowflake.ID) []int64 {
	values := make([]int64, len(ids))
	for i, id := range ids {
		values[i] = int64(id)
	}
	return values
}

func (c caller) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	last, err := c.Caller.Numbers(ctx, name, n)
	return last - n + 1, c.error(ctx, err)
}

func (c caller) Close() error {
	c.Caller.Close()
	return nil
}

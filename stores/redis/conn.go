package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"syscall"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

// connect dials a connection for the driver.
func connect(dialer *dial.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.Dial(ctx, network, address)
		if plain, ok := conn.(plain); ok { // with TLS, the server ends the connection before the handshake, and says nothing
			conn = &firstAnswer{plain: plain}
		}
		return conn, err
	}
}

// plain is a connection of which the driver can check whether the server has closed it.
type plain interface {
	net.Conn
	syscall.Conn
}

// firstAnswer is a connection that remembers a refusal with which the server answers first. A server with too many clients
// says so and closes the connection; the driver takes that for the answer to HELLO, and goes on. It is for one goroutine
// at a time, as a connection of the driver is.
type firstAnswer struct {
	plain
	answers int
	refusal []byte // or nil
}

// refusal is how an answer begins after which the server closes the connection. Another may show the password.
var refusal = regexp.MustCompile(`^-(ERR max number of clients|DENIED )[^.\r\n]*`)

func (c *firstAnswer) Read(b []byte) (int, error) {
	n, err := c.plain.Read(b)
	if n > 0 {
		if c.answers++; c.answers == 1 {
			c.refusal = bytes.TrimPrefix(refusal.Find(b[:n]), []byte("-"))
		}
	}
	return n, c.because(err)
}

func (c *firstAnswer) Write(b []byte) (int, error) {
	n, err := c.plain.Write(b)
	return n, c.because(err)
}

// errSilent is that of a connection that the server has ended before any answer.
var errSilent = stores.Transient.New("the server answered nothing: look whether it runs; a proxy that lacks HELLO, as twemproxy does, is none for tickflake")

// because adds to the error of a connection that the server has ended why it did so. It wraps two errors: the driver
// takes one that is wrapped alone out of the other.
func (c *firstAnswer) because(err error) error {
	late, ok := err.(net.Error)
	switch {
	case err == nil, ok && late.Timeout(), errors.Is(err, net.ErrClosed):
	case c.answers == 0:
		err = fmt.Errorf("%w: %w", errSilent, err)
	case c.answers == 1 && c.refusal != nil:
		err = fmt.Errorf("%w: %w", errors.New(string(c.refusal)), err)
	}
	return err
}

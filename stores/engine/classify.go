package engine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"

	"github.com/tickflake/tickflake/stores"
)

// classified is an error of a driver, with the kind that it has for every engine.
type classified struct {
	error
	kind stores.Kind
}

func (c *classified) Unwrap() error { return c.error }

func (c *classified) Is(target error) bool { return target == c.kind }

// classify gives an error a kind, if nothing in it has one and its type tells: a file that may not
// be used is Refused; no connection, no answer in time, and a context that has ended are Passing.
func classify(err error) error {
	kind := stores.KindOf(err)
	if kind.Retryable() && kind != stores.Unknown && errors.Is(err, fs.ErrPermission) {
		return &classified{err, stores.Refused} // stores.ErrOverloaded, of the end of the context, is stores.Passing
	}
	if kind != stores.Unknown {
		return err
	}
	_, network := errors.AsType[*net.OpError](err)
	_, name := errors.AsType[*net.DNSError](err)
	_, web := errors.AsType[*url.Error](err) // whose cause net/http may hide
	late, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &classified{err, stores.Refused}
	case network, name, web, ok && late.Timeout(), errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &classified{err, stores.Passing}
	}
	return err
}

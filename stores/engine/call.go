package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/stores"
)

// patience is how long Wait waits after the end of its context: the error of a driver that ends with it has the reason.
const patience = 100 * time.Millisecond

// Wait runs call on a new goroutine, and returns the results of call, or, 0.1 s after ctx
// has ended, an error that wraps the context's. call then finishes in the background.
// Wait is for drivers whose calls take no context, or do not end with it, and for
// disks that hang; the [Skeleton] calls its Texts so. call must not use memory of the caller of the Store's method,
// such as the value of a Swap, but a copy.
//
// If ctx has ended before, Wait does not run call.
func Wait[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := pause.Ended(ctx); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		return none, fmt.Errorf("no answer yet: %w", pause.Ended(ctx))
	}
}

// Failed returns the error of an operation on a store, in the form that all engines
// have: "etcd at h:2379: swap node/0000017 in namespace "ids": CAUSE". It wraps err, and
// that of ctx if ctx has ended, since a driver may return another error then. If the engine has
// given err no [stores.Kind], and it is one of the network, of time or of permission, Failed gives it
// the kind. A conflict stays a conflict when ctx has ended: it says for certain that nothing was changed.
//
// engine is the engine's name and the addresses of its servers; op is
// list, read, swap or lock. A list has no key, and a store without namespaces no namespace.
func Failed(ctx context.Context, engine, op, key, namespace string, err error) error {
	if key == "" {
		key = "cells"
	}
	if len(key) > stores.MaxKey {
		key = key[:stores.MaxKey] + "…"
	}
	if namespace != "" {
		key += fmt.Sprintf(" in namespace %q", namespace)
	}
	return fmt.Errorf("%s: %s %s: %w", engine, op, key, oneLine{classify(withEnd(ctx, err))})
}

// OpenFailed returns the error of an engine whose server could not be used when the store
// was opened. It wraps err, and that of ctx if ctx has ended. engine is as in [Failed].
func OpenFailed(ctx context.Context, engine string, err error) error {
	err = oneLine{classify(withEnd(ctx, err))}
	if errors.Is(err, stores.Permanent) { // the server was reached, and err says what it refuses
		return fmt.Errorf("%s: open: %w", engine, err)
	}
	return fmt.Errorf("%s: open: %w; check that its servers are reachable and the credentials are right", engine, err)
}

// oneLine is an error whose text is one line: some drivers write a line for each try, and repeat themselves.
type oneLine struct{ error }

var lineEnd = regexp.MustCompile(`\s*[\r\n]\s*`)

func (e oneLine) Unwrap() error { return e.error }

func (e oneLine) Error() string {
	lines := slices.Compact(lineEnd.Split(e.error.Error(), -1))
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

// withEnd adds to err that ctx has ended.
func withEnd(ctx context.Context, err error) error {
	end := pause.ContextError(ctx)
	if end == nil || errors.Is(err, stores.ErrConflict) {
		return err
	}
	if web, ok := errors.AsType[*url.Error](err); ok && (errors.Is(web.Err, end) || web.Err == context.Cause(ctx)) {
		err = fmt.Errorf("no answer yet: %w", err) // what follows its URL only repeats the end
	}
	if !errors.Is(err, end) {
		err = fmt.Errorf("%w: %w", end, err)
	}
	return err
}

// Retry calls connect again and again, with pauses, until it succeeds, its error is not Retryable, or ctx ends. The error is
// the last one that the end of ctx has not caused, and wraps that of ctx if it has ended.
func Retry(ctx context.Context, connect func() error) error {
	return pause.Retry(ctx, func(err error) bool { return stores.KindOf(err).Retryable() }, connect)
}

// Note notes why a server was not reached, unless err is nil, for the warning of [stores.Open], whose context ctx is.
func Note(ctx context.Context, err error) { pause.Note(ctx, err) }

// Backoff has the pauses between the tries of an operation. They double from First up to Last, and
// up to half of each is left out at random, so that processes that began at once do not go on at
// once. It is for one goroutine.
type Backoff = pause.Backoff

// classified is an error of a driver, with the kind that it has for every engine.
type classified struct {
	error
	kind stores.Kind
}

func (c *classified) Unwrap() error { return c.error }

func (c *classified) Is(target error) bool { return target == c.kind }

// classify gives an error a kind, if nothing in it has one and its type tells: a file that may not
// be used is Permanent; no connection, no answer in time, and a context that has ended are Transient.
func classify(err error) error {
	if stores.KindOf(err) != stores.Unknown {
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
		return &classified{err, stores.Permanent}
	case network, name, web, ok && late.Timeout(), errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &classified{err, stores.Transient}
	}
	return err
}

package stores

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Wait runs call on a goroutine of its own, and returns what call does, or an error
// that wraps the context's as soon as ctx has ended. call is then left to finish by
// itself. It is for drivers whose calls take no context, or do not end with it, and for
// disks that hang. call must not use what belongs to the caller of the Store's method,
// such as the value of a Swap, unless it has copied it.
//
// If ctx has ended before, Wait does not run call.
func Wait[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ended(ctx); err != nil {
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
	select {
	case r := <-done: // both were ready
		return r.value, r.err
	default:
		return none, fmt.Errorf("no answer yet: %w", ended(ctx))
	}
}

// ended returns nil, or the error of a context that has ended, with its cause.
func ended(ctx context.Context) error {
	err, cause := contextError(ctx), context.Cause(ctx)
	if err == nil || cause == nil || cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// contextError returns the context's error. The timer of a deadline may be late, and a
// driver that looks at the clock is not.
func contextError(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// Failed returns the error of an operation on a store, in the form that all engines
// have: "etcd at h:2379: swap node/0000017 in namespace "ids": CAUSE". It wraps err, and
// that of ctx if ctx has ended, since a driver may report that in words of its own. A
// conflict stays one when ctx has ended: it says for certain that nothing was changed.
//
// engine is the engine's name and where its servers are, as [At] returns it; op is list,
// read, swap or lock. A list has no key, and a store without namespaces no namespace.
func Failed(ctx context.Context, engine, op, key, namespace string, err error) error {
	if end := contextError(ctx); end != nil && !errors.Is(err, end) && !errors.Is(err, ErrConflict) {
		err = fmt.Errorf("%w: %w", end, err)
	}
	if key == "" {
		key = "cells"
	}
	if len(key) > MaxKey {
		key = key[:MaxKey] + "…"
	}
	if namespace != "" {
		key += fmt.Sprintf(" in namespace %q", namespace)
	}
	return fmt.Errorf("%s: %s %s: %w", engine, op, key, err)
}

// OpenFailed returns the error of an engine whose server could not be used when the store
// was opened. It wraps err, and that of ctx if ctx has ended. engine is as in [Failed].
func OpenFailed(ctx context.Context, engine string, err error) error {
	if end := contextError(ctx); end != nil && !errors.Is(err, end) {
		err = fmt.Errorf("%w: %w", end, err)
	}
	return fmt.Errorf("%s: open: %w; check that its servers are reachable and the credentials are right", engine, err)
}

// At returns the name of an engine, and where its servers are if that is known. A server
// is HOST:PORT, or a URL, of which only that is shown.
func At(engine string, servers ...string) string {
	var hosts []string
	for _, server := range servers {
		if _, rest, ok := strings.Cut(server, "://"); ok {
			server = rest
		}
		if server = server[strings.LastIndex(server, "@")+1:]; server != "" {
			hosts = append(hosts, server)
		}
	}
	if len(hosts) == 0 {
		return engine
	}
	return engine + " at " + strings.Join(hosts, ",")
}

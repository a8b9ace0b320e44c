package main

import (
	"context"
	"io"
)

// input reads from r until ctx ends, whose cause is then the error. It calls
// before ahead of each read, so that nobody waits at a terminal or a pipe for
// output that only waits for more input.
type input struct {
	ctx    context.Context
	r      io.Reader
	before func() error
}

func (in *input) Read(p []byte) (int, error) {
	if err := in.before(); err != nil {
		return 0, err
	}
	type result struct {
		n   int
		err error
	}
	// A read from a terminal cannot be called off. When ctx ends, it is left
	// behind with p, which the caller must not use again.
	done := make(chan result, 1)
	go func() {
		n, err := in.r.Read(p)
		done <- result{n, err}
	}()
	select {
	case <-in.ctx.Done():
		return 0, context.Cause(in.ctx)
	case r := <-done:
		return r.n, r.err
	}
}

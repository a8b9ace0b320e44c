package main

import (
	"context"
	"io"
)

// input reads from r until ctx ends; then the error is the cause of ctx. It calls before
// ahead of each read, to flush output before it waits for input.
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
	// A read from a terminal cannot be cancelled. When ctx ends, the read goes on with
	// p, so the caller must not use p again.
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

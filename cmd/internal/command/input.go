package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/tickflake/tickflake/internal/cli"
)

// Confirm asks a question about an act, unless yes is given. Its error is refused if the answer
// is not yes, or that of a signal, or says that there is no terminal.
func (c *Console) Confirm(ctx context.Context, yes bool, act, question string, refused error) error {
	if yes {
		return nil
	}
	if !IsTerminal(c.In) {
		return cli.Usage(fmt.Errorf("there is no terminal to confirm the %s: give --yes", act))
	}
	fmt.Fprintf(c.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(c.Input(ctx)).ReadString('\n')
	if err != nil && err != io.EOF {
		fmt.Fprintln(c.Err)
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return refused
	}
	return nil
}

// Progress returns a function that shows a text on one line of a terminal, in place of the text
// before. It shows nothing if standard error is no terminal.
func (c *Console) Progress() func(text string) {
	if !IsTerminal(c.Err) {
		return func(string) {}
	}
	return func(text string) { fmt.Fprintf(c.Err, "\r\x1b[K%.78s", Visible(text)) } // a longer line would wrap
}

// IsTerminal reports whether a reader or writer of the console is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Lines calls each with the lines of standard input, whose numbers begin with 1, until one has an error. tooLong is
// the error of a line that exceeds [BufferSize]. If ctx ends, the error is its cause. Before Lines waits for input, it
// flushes the output.
func (c *Console) Lines(ctx context.Context, each func(number int, line []byte, tooLong error) error) error {
	in := bufio.NewReaderSize(c.Input(ctx), BufferSize)
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		var tooLong error
		for errors.Is(err, bufio.ErrBufferFull) {
			tooLong = fmt.Errorf("longer than %d bytes", BufferSize)
			_, err = in.ReadSlice('\n')
		}
		end := errors.Is(err, io.EOF)
		switch {
		case end && len(line) == 0 && tooLong == nil:
			return nil
		case isInterruption(err):
			return fmt.Errorf("%w in line %d", err, number)
		case err != nil && !end:
			return err
		}
		if err := each(number, line, tooLong); err != nil || end {
			return err
		}
	}
}

func isInterruption(err error) bool {
	_, is := errors.AsType[cli.Interruption](err)
	return is
}

// Input returns a reader of standard input. When ctx ends, its error is the cause of ctx. Before it waits for input, it
// flushes the output.
func (c *Console) Input(ctx context.Context) io.Reader { return &input{ctx, c.In, c.Out.Flush} }

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

package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

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
	answer, err := bufio.NewReader(&input{ctx, c.In, c.Out.Flush}).ReadString('\n')
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

// Input returns a reader of standard input, as [Text] reads it. When ctx ends, its error is the cause of ctx.
// Before it waits for input, it flushes the output.
func (c *Console) Input(ctx context.Context) io.Reader { return Text(&input{ctx, c.In, c.Out.Flush}) }

// Text returns a reader of r without a byte order mark, and as UTF-8 where that says UTF-16: editors of Windows
// write one, and so does > of PowerShell.
func Text(r io.Reader) io.Reader { return &text{in: bufio.NewReader(r)} }

type text struct {
	in   *bufio.Reader
	from io.Reader // nil before the first Read
}

func (t *text) Read(p []byte) (int, error) {
	if t.from == nil {
		first, err := t.in.Peek(1)
		if err != nil {
			return 0, err
		}
		t.from = t.in
		// What takes the mark away waits for three bytes, and a line that is typed may have two.
		if first[0] >= 0xEF { // as in each mark
			t.from = transform.NewReader(t.in, unicode.BOMOverride(transform.Nop))
		}
	}
	return t.from.Read(p)
}

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

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// warnings shows what a lease has to say on standard error, if it is a warning: all
// that goes well goes without saying.
type warnings struct {
	mu    *sync.Mutex
	out   io.Writer
	attrs []slog.Attr
}

func newWarnings(c *console) *slog.Logger {
	w := &warnings{mu: new(sync.Mutex), out: c.err}
	return slog.New(w)
}

// Enabled reports whether to show a level.
func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle writes a line, with the attributes in parentheses.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	var attrs []string
	add := func(a slog.Attr) bool {
		attrs = append(attrs, fmt.Sprintf("%s: %s", a.Key, visible(a.Value.Resolve().String())))
		return true
	}
	for _, a := range w.attrs {
		add(a)
	}
	r.Attrs(add)
	details := ""
	if len(attrs) > 0 {
		details = " (" + strings.Join(attrs, "; ") + ")"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := fmt.Fprintf(w.out, "tickflake: warning: %s%s\n", visible(r.Message), details)
	return err
}

// WithAttrs returns a handler that adds attrs to each line.
func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *w
	more.attrs = append(append([]slog.Attr{}, w.attrs...), attrs...)
	return &more
}

// WithGroup returns w: a line for people needs no groups.
func (w *warnings) WithGroup(string) slog.Handler { return w }

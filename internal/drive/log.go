package drive

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	logBurst = 64
	logEvery = time.Minute
)

// Log is a handler that bounds the lines of a log. Of each level from Info on it passes 64 lines at
// once, and then one per minute, with the number of lines that were dropped before it. So
// a store that fails and recovers many times a second does not fill a disk. The last line of a
// level is only late: it may be the one about the outage that goes on. A Log may be used by several
// goroutines at once. Loggers made of it by With are not bounded.
type Log struct {
	slog.Handler
	elapsed func() time.Duration
	mu      sync.Mutex
	budgets map[slog.Level]*budget // three levels are in use
}

// NewLog returns a Log that passes its lines to a handler, and counts its minutes by a clock.
func NewLog(h slog.Handler, elapsed func() time.Duration) *Log {
	return &Log{Handler: h, elapsed: elapsed, budgets: map[slog.Level]*budget{}}
}

// budget is how many lines may still be passed.
type budget struct {
	lines, dropped int
	since          time.Duration // the last time that lines were added
	last           *slog.Record  // that waits for the budget, or nil
}

// Handle passes a line, or keeps it until [Log.Flush].
func (l *Log) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return l.Handler.Handle(ctx, r)
	}
	l.mu.Lock()
	b := l.budgets[r.Level]
	if b == nil {
		b = &budget{lines: logBurst, since: l.elapsed()}
		l.budgets[r.Level] = b
	}
	if b.last != nil {
		b.dropped++
	}
	last := r.Clone()
	b.last = &last
	l.mu.Unlock()
	l.Flush(ctx)
	return nil
}

// Flush passes the lines that wait, as far as the budgets go. It is to be called with each step.
func (l *Log) Flush(ctx context.Context) {
	l.mu.Lock()
	var lines []*slog.Record
	for _, b := range l.budgets {
		n := (l.elapsed() - b.since) / logEvery
		b.lines = int(min(time.Duration(b.lines)+n, logBurst))
		b.since += n * logEvery
		if b.last == nil || b.lines <= 0 {
			continue
		}
		if b.dropped > 0 {
			b.last.AddAttrs(slog.Int("dropped", b.dropped))
		}
		lines = append(lines, b.last)
		b.lines, b.dropped, b.last = b.lines-1, 0, nil
	}
	l.mu.Unlock()
	for _, line := range lines {
		_ = l.Handler.Handle(ctx, *line) // a Logger has no use for the error either
	}
}

package lease

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

// limited is the handler of a Keeper's logger. Of each level from Info on it passes logBurst
// lines, and then one in logEvery, with the number of those that were dropped before it. So a
// store that fails and recovers many times a second fills no disk.
type limited struct {
	slog.Handler
	elapsed func() time.Duration

	mu      sync.Mutex
	budgets map[slog.Level]*budget // the Keeper uses three levels
}

// budget has the lines that may still be passed.
type budget struct {
	lines, dropped int
	since          time.Duration // the last time that lines were added
}

func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		dropped, ok := l.take(r.Level)
		if !ok {
			return nil
		}
		if dropped > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("dropped", dropped))
		}
	}
	return l.Handler.Handle(ctx, r)
}

// take takes a line from the budget of a level, and returns how many were dropped since the
// last one.
func (l *limited) take(level slog.Level) (dropped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.elapsed()
	b := l.budgets[level]
	if b == nil {
		b = &budget{lines: logBurst, since: now}
		l.budgets[level] = b
	}
	n := (now - b.since) / logEvery
	b.lines = int(min(time.Duration(b.lines)+n, logBurst))
	b.since += n * logEvery
	if b.lines <= 0 {
		b.dropped++
		return 0, false
	}
	b.lines--
	dropped, b.dropped = b.dropped, 0
	return dropped, true
}

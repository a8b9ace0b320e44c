package generator_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/storetest"
)

// hanging is a store that hangs while it is opened, or in its operations, until their
// contexts end.
type hanging struct {
	*storetest.Memory
	opening, working atomic.Bool
	hung             atomic.Int32 // operations
}

// hangingStore makes one known as hangtest://.
func hangingStore() *hanging {
	s := &hanging{Memory: storetest.NewMemory()}
	s.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
		if s.working.Load() && op.Key != "probe" { // which asks whether it can be opened
			s.hung.Add(1)
			<-ctx.Done()
			s.hung.Add(-1)
		}
		return storetest.None
	}
	stores.Register("hangtest", func(ctx context.Context, _ string) (stores.Store, error) {
		if s.opening.Load() {
			<-ctx.Done()
			return nil, engine.OpenFailed(ctx, "test", ctx.Err())
		}
		return s, nil
	})
	return s
}

func openHanging(ctx context.Context) (*generator.Generator, error) {
	return generator.Open(ctx, "hangtest://", generator.WithLeaseOptions(lease.WithLogger(slog.New(slog.DiscardHandler))))
}

const (
	hangTime = 300 * time.Millisecond
	openTime = 10 * time.Second // of stores.Open without a deadline
	patience = time.Second      // of the default strategy
)

// hangCalls are the calls of this package that can wait, with their bounds if the context
// does not end, or if they have none.
var hangCalls = []struct {
	name       string
	bound      time.Duration
	hasContext bool
	run        func(context.Context, *generator.Generator) error
}{
	{"Open", openTime + 2*lease.DefaultTimeout, true, func(ctx context.Context, _ *generator.Generator) error {
		_, err := openHanging(ctx)
		return err
	}},
	{"Generator.Next", patience, false, func(_ context.Context, g *generator.Generator) error { _, err := g.Next(); return err }},
	{"Generator.NextContext", patience, true, func(ctx context.Context, g *generator.Generator) error {
		_, err := g.NextContext(ctx)
		return err
	}},
	{"Generator.NextAfter", patience, true, func(ctx context.Context, g *generator.Generator) error {
		_, err := g.NextAfter(ctx, 0)
		return err
	}},
	{"Generator.NextN", patience, false, func(_ context.Context, g *generator.Generator) error {
		_, err := g.NextN(make([]snowflake.ID, 10))
		return err
	}},
	{"Generator.NextNContext", patience, true, func(ctx context.Context, g *generator.Generator) error {
		_, err := g.NextNContext(ctx, make([]snowflake.ID, 10))
		return err
	}},
	{"Generator.NextRun", patience, true, func(ctx context.Context, g *generator.Generator) error {
		_, err := g.NextRun(ctx, 10)
		return err
	}},
	{"Stream.Next", patience, false, func(_ context.Context, g *generator.Generator) error { _, err := g.Stream().Next(); return err }},
	{"Stream.NextContext", patience, true, func(ctx context.Context, g *generator.Generator) error {
		_, err := g.Stream().NextContext(ctx)
		return err
	}},
	{"Generator.All", patience, true, func(ctx context.Context, g *generator.Generator) (last error) {
		for _, err := range g.All(ctx) {
			last = err
		}
		return last
	}},
	{"Generator.Restored", 4 * lease.DefaultTimeout, true, func(ctx context.Context, g *generator.Generator) error { return g.Restored(ctx) }},
	{"Generator.CloseContext", 2 * lease.DefaultTimeout, true, func(ctx context.Context, g *generator.Generator) error { return g.CloseContext(ctx) }},
	{"Generator.Close", 2 * lease.DefaultTimeout, false, func(_ context.Context, g *generator.Generator) error { return g.Close() }},
}

// Every call returns when its context ends, or else within its bound, while the store hangs
// and the grant has ended. Those that are not in the table never wait.
func TestHangs(t *testing.T) {
	endings := map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), hangTime)
		},
		"cancel": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(hangTime, cancel)
			return ctx, cancel
		},
		"none": func() (context.Context, context.CancelFunc) { return context.Background(), func() {} },
	}
	for _, c := range hangCalls {
		worst := map[string]time.Duration{}
		for ending, after := range endings {
			for _, opening := range []bool{false, true} {
				if opening && c.name != "Open" || ending != "none" && !c.hasContext {
					continue
				}
				inBubble(t, func(t *testing.T) {
					s := hangingStore()
					g, err := openHanging(t.Context())
					require.NoError(t, err)
					s.working.Store(true)
					time.Sleep(lease.DefaultWindow + time.Second)
					for s.hung.Load() == 0 { // the keeper's goroutine
						time.Sleep(time.Millisecond)
					}
					s.opening.Store(opening)

					bound := c.bound
					if ending != "none" {
						bound = hangTime
					}
					ctx, cancel := after()
					defer cancel()
					begin := time.Now()
					err = c.run(ctx, g)
					took := time.Since(begin)
					assert.LessOrEqual(t, took, bound, "%s, context: %s: %v", c.name, ending, err)
					assert.NotZero(t, took, "%s, context: %s: it does not wait: %v", c.name, ending, err)
					assert.Error(t, err, "%s, context: %s", c.name, ending)
					worst[ending] = max(worst[ending], took)

					begin = time.Now()
					g.Stats()
					g.Node()
					g.Layout()
					g.Keeper().Stats()
					g.Stream()
					assert.Zero(t, time.Since(begin), "they never wait")
					s.working.Store(false)
					_ = g.Close() // the store may be closed
				})
			}
		}
		t.Logf("%s: with a deadline at most %v, canceled %v, without %v", c.name, worst["deadline"], worst["cancel"], worst["none"])
	}
}

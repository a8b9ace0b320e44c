package generator_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

func openHanging(ctx context.Context) (*generator.Generator, error) {
	return generator.Open(ctx, "hangtest://", generator.WithLogger(slog.New(slog.DiscardHandler)))
}

const (
	openTime = 10 * time.Second // of stores.Open without a deadline
	patience = time.Second      // of the default strategy
	opens    = "Open, and the connection hangs"
)

// hangCalls are the calls of this package that can wait, with their bounds if the context does not end. Those
// without a context pass one that does not.
var hangCalls = map[string]struct {
	bound time.Duration
	call  func(context.Context, *generator.Generator) error
}{
	"Open":        {openTime + 2*lease.DefaultTimeout, func(ctx context.Context, _ *generator.Generator) error { return second(openHanging(ctx)) }},
	opens:         {openTime, func(ctx context.Context, _ *generator.Generator) error { return second(openHanging(ctx)) }},
	"NextContext": {patience, func(ctx context.Context, g *generator.Generator) error { return second(g.NextContext(ctx)) }},
	"NextAfter":   {patience, func(ctx context.Context, g *generator.Generator) error { return second(g.NextAfter(ctx, 0)) }},
	"NextNContext": {patience, func(ctx context.Context, g *generator.Generator) error {
		return second(g.NextNContext(ctx, make([]snowflake.ID, 10)))
	}},
	"NextRuns": {patience, func(ctx context.Context, g *generator.Generator) error { return second(g.NextRuns(ctx, 10, nil)) }},
	"Stream":   {patience, func(ctx context.Context, g *generator.Generator) error { return second(g.Stream().NextContext(ctx)) }},
	"All": {patience, func(ctx context.Context, g *generator.Generator) (last error) {
		for _, err := range g.IDs(ctx) {
			if last != nil {
				return nil // an error was not the last element
			}
			last = err
		}
		return last
	}},
	"Restored":     {4 * lease.DefaultTimeout, func(ctx context.Context, g *generator.Generator) error { return g.Restored(ctx) }},
	"CloseContext": {2 * lease.DefaultTimeout, func(ctx context.Context, g *generator.Generator) error { return g.CloseContext(ctx) }},
}

// Every call returns when its context ends, or else within its bound, while the store hangs
// and the grant has ended. Those that are not in the table never wait.
func TestHangs(t *testing.T) {
	const soon = 300 * time.Millisecond
	for name, c := range hangCalls {
		for _, ending := range []string{"none", "deadline", "cancel"} {
			t.Run(name+"/"+ending, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					var opening, working atomic.Bool // hang
					memory := storetest.NewMemory()
					memory.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
						if working.Load() && op.Key != "probe" { // which asks whether it can be opened
							<-ctx.Done()
						}
						return storetest.None
					}
					stores.Register("hangtest", func(ctx context.Context, _ string) (stores.Store, error) {
						if opening.Load() {
							<-ctx.Done()
							return nil, engine.OpenFailed(ctx, "test", ctx.Err())
						}
						return memory, nil
					})
					g, err := openHanging(t.Context())
					require.NoError(t, err)
					working.Store(true)
					time.Sleep(lease.DefaultWindow + time.Second)
					synctest.Wait() // the keeper hangs, too
					opening.Store(name == opens)

					bound, ctx, cancel := soon, context.Background(), func() {}
					switch ending {
					case "none":
						bound = c.bound
					case "deadline":
						ctx, cancel = context.WithTimeout(ctx, soon)
					case "cancel":
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(soon, cancel)
					}
					defer cancel()
					begin := time.Now()
					_, _, _, _, _ = g.Stats(), g.Node(), g.Layout(), g.Err(), g.Stream()
					assert.Zero(t, time.Since(begin), "they never wait")
					assert.Error(t, c.call(ctx, g))
					assert.LessOrEqual(t, time.Since(begin), bound)
					assert.NotZero(t, time.Since(begin), "it does not wait")
					working.Store(false)
					_ = g.Close() // the store may be closed
				})
			})
		}
	}
}

package lease_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

const (
	period = lease.DefaultWindow
	third  = period / 3
)

var noon = time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)

// world has the cells, the clock and the log of the keepers of a test, which polls them.
type world struct {
	*testing.T
	clock *clocktest.Virtual
	cells *storetest.Memory
	log   *record
	calls map[storetest.OpKind]int // of all clients from client
}

func newWorld(t *testing.T) *world {
	return &world{t, clocktest.NewVirtual(noon), storetest.NewMemory(), &record{}, map[storetest.OpKind]int{}}
}

// record is the text of a log. A keeper's goroutine may write it while a test reads it.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(line)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *record) count(text string) int { return strings.Count(r.String(), text) }

func (r *record) option() lease.Option {
	return lease.WithLogger(slog.New(slog.NewTextHandler(r, nil)))
}

// client is a client of the cells that counts its calls. fault, if not nil, says what becomes of each.
func (w *world) client(fault func(storetest.Op) storetest.Fault) *storetest.Memory {
	c := w.cells.Client()
	c.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if w.calls[op.Kind]++; fault != nil {
			return fault(op)
		}
		return storetest.None
	}
	return c
}

// away is a fault of a client: the store cannot be reached while it is true.
type away bool

func (a *away) fault(storetest.Op) storetest.Fault {
	if *a {
		return storetest.Unavailable
	}
	return storetest.None
}

func (w *world) trips() (n int) {
	for _, calls := range w.calls {
		n += calls
	}
	return n
}

func (w *world) options(more ...lease.Option) []lease.Option {
	return append([]lease.Option{lease.WithClock(w.clock), lease.WithPolling(), w.log.option()}, more...)
}

// try claims on a store, or, if that is nil, on a client of the cells.
func (w *world) try(store stores.Store, more ...lease.Option) (*lease.Keeper, error) {
	if store == nil {
		store = w.client(nil)
	}
	return lease.Claim(w.Context(), store, w.options(more...)...)
}

// claim is try without an error.
func (w *world) claim(store stores.Store, more ...lease.Option) *lease.Keeper {
	w.Helper()
	k, err := w.try(store, more...)
	require.NoError(w, err)
	return k
}

// generator is one that issues with a keeper, and refuses what lies ahead of the clock.
func (w *world) generator(k *lease.Keeper) *generator.Generator {
	g, err := generator.New(generator.WithLease(k), generator.WithStrategy(strategies.Reject()))
	require.NoError(w, err)
	return g
}

// pass lets time pass in steps of a second, with a step of each keeper after each.
func (w *world) pass(d time.Duration, keepers ...*lease.Keeper) {
	for ; d > 0; d -= time.Second {
		w.clock.Advance(min(d, time.Second))
		for _, k := range keepers {
			k.Poll(w.Context())
		}
	}
}

// keep lets time pass for a keeper as its goroutine does.
func (w *world) keep(k *lease.Keeper, d time.Duration, each func()) {
	w.Helper()
	for end := w.clock.Elapsed() + d; w.clock.Elapsed() < end; {
		next := first(k.Poll(w.Context()))
		require.GreaterOrEqual(w, next, time.Millisecond, "it would run hot")
		each()
		w.clock.Advance(next)
	}
}

func (w *world) holding(node int64) lease.Holding {
	return must(lease.Inspect(w.Context(), w.cells, node))
}

// write writes the cell of a key without a keeper.
func (w *world) write(key string, value []byte) {
	must(w.cells.Swap(w.Context(), key, w.cells.Peek(key).Version, value))
}

// refuses checks that an error is about an option or argument.
func (w *world) refuses(option string, err error) {
	w.Helper()
	var refused *stores.OptionError
	require.ErrorAs(w, err, &refused)
	require.Equal(w, option, refused.Option)
	require.ErrorIs(w, err, stores.Refused)
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func first[T any](x T, _ error) T { return x }

func second[T any](_ T, err error) error { return err }

// isSwap reports whether an operation writes the cell of a node number.
func isSwap(op storetest.Op) bool { return op.Kind == storetest.OpSwap && op.Key != cell.LayoutKey }

// nodeOf is the node number of a key.
func nodeOf(key string) int64 {
	node, ok := cell.NodeOf(key)
	if !ok {
		panic(key)
	}
	return node
}

func pin(node int64) lease.Option { return lease.WithNode(lease.NodeNumber(node)) }

// small is a layout of a few node numbers.
func small(nodeBits int) lease.Option { return lease.WithLayout(smallLayout(nodeBits)) }

func smallLayout(nodeBits int) snowflake.Layout {
	l := snowflake.Default()
	l.NodeBits, l.Name, l.Parts = nodeBits, "", nil
	return l
}

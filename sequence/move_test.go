package sequence_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

var quiet = sequence.WithLogger(slog.New(slog.DiscardHandler))

// TestMove moves a sequence that a process uses. Each step is made twice, and each operation
// fails once before, with and without an effect.
func TestMove(t *testing.T) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		t.Run(mode.String(), func(t *testing.T) {
			ctx, old, to := t.Context(), storetest.NewMemory(), storetest.NewMemory()
			created := sequence.Definition{Mode: mode, Start: 10, Stride: sequence.Every(3, 1), Max: 1000, MinStep: 5, MaxStep: 5}
			failing := func(store *storetest.Memory, do func(stores.Store) error) {
				for n, done := 0, false; !done; n++ {
					calls, faulty := 0, store.Client()
					faulty.Before = func(context.Context, storetest.Op) storetest.Fault {
						if calls++; calls > n/2 {
							return []storetest.Fault{storetest.Unavailable, storetest.ReplyLost}[n%2]
						}
						return storetest.None
					}
					err := do(faulty)
					if done = err == nil; !done {
						require.ErrorIs(t, err, sequence.ErrStore)
					}
				}
			}
			_, err := sequence.Export(ctx, old, "orders", "new")
			require.ErrorIs(t, err, sequence.ErrNotFound)
			process := open(t, old, "orders", created, sequence.WithPolling(), sequence.WithOutage(0), quiet)
			take := func(s *sequence.Sequence) (int64, error) {
				numbers, errs := make(chan int64, 1), make(chan error, 1)
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go func() {
					n, err := s.Next(ctx)
					numbers <- n
					errs <- err
				}()
				for {
					select {
					case n := <-numbers:
						return n, <-errs
					default:
						s.Poll(ctx)
					}
				}
			}
			require.EqualValues(t, 11, must(take(process)))
			_, _, err = sequence.Set(ctx, old, "orders", sequence.Change{Max: 2000})
			require.NoError(t, err)
			_, err = sequence.Export(ctx, old, "orders", "")
			require.ErrorIs(t, err, stores.Refused)
			busy, conflicts := old.Client(), 0
			busy.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
				if cell := old.Peek(op.Key); op.Kind == storetest.OpSwap {
					must(old.Swap(ctx, cell.Key, cell.Version, cell.Value))
					conflicts++
					require.Less(t, conflicts, 1000)
				}
				return storetest.None
			}
			_, err = sequence.Export(ctx, busy, "orders", "new")
			require.ErrorIs(t, err, stores.ErrConflict)

			var floor sequence.Floor
			failing(old, func(store stores.Store) (err error) {
				floor, err = sequence.Export(ctx, store, "orders", "new")
				return err
			})
			again, err := sequence.Export(ctx, old, "orders", "elsewhere")
			require.NoError(t, err)
			require.Equal(t, floor, again)

			// The process hands out its reserve, and no more. Nothing changes the old cell.
			for want := int64(14); want < floor.Next; want += 3 {
				require.Equal(t, want, must(take(process)))
			}
			_, err = take(process)
			require.ErrorIs(t, err, sequence.ErrMoved)
			require.ErrorContains(t, err, "moved to new")
			require.NoError(t, process.Close())
			_, err = sequence.Open(ctx, old, "orders")
			require.ErrorIs(t, err, sequence.ErrMoved)
			require.ErrorIs(t, sequence.Create(ctx, old, "orders", created), sequence.ErrMoved)
			_, _, err = sequence.Set(ctx, old, "orders", sequence.Change{Next: 700})
			require.ErrorIs(t, err, sequence.ErrMoved)
			_, err = sequence.Delete(ctx, old, "orders")
			require.ErrorIs(t, err, sequence.ErrMoved)
			require.ErrorIs(t, sequence.Import(ctx, old, floor), sequence.ErrMoved)
			assert.Equal(t, "new", must(sequence.Inspect(ctx, old, "orders")).MovedTo)

			text, err := json.Marshal(floor)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &floor))
			failing(to, func(store stores.Store) error {
				return sequence.Import(ctx, store, floor)
			})
			process = open(t, to, "orders", created, sequence.WithPolling(), quiet) // as it was created
			require.Equal(t, floor.Next, must(take(process)))
			require.NoError(t, sequence.Import(ctx, to, floor))
			info := must(sequence.Inspect(ctx, to, "orders"))
			require.Greater(t, info.Next, floor.Next, "never set back")
			require.EqualValues(t, 2000, info.Definition.Max)
			require.Equal(t, floor.Next+3, must(take(process)))
			other := floor
			other.To = "another"
			other = sequence.Sealed(other)
			require.ErrorIs(t, sequence.Import(ctx, to, other), stores.Refused)

			// A sequence that was created before, and not used, is taken.
			third := storetest.NewMemory()
			require.NoError(t, sequence.Create(ctx, third, "orders", created))
			require.NoError(t, sequence.Import(ctx, third, floor))
			require.Equal(t, floor.Next, must(sequence.Inspect(ctx, third, "orders")).Next)
			wrong := floor
			wrong.Definition.Start, wrong.Created.Start = 9, 9
			var differs *sequence.DefinitionError
			fourth := storetest.NewMemory()
			require.NoError(t, sequence.Create(ctx, fourth, "orders", created))
			require.ErrorAs(t, sequence.Import(ctx, fourth, sequence.Sealed(wrong)), &differs)
			for want, change := range map[string]func(*sequence.Floor){
				"format is 0":   func(f *sequence.Floor) { f.Format = 0 },
				"newer version": func(f *sequence.Floor) { f.Format = 2 },
				`export ""`:     func(f *sequence.Floor) { f.Export = "" },
				"start -1":      func(f *sequence.Floor) { f.Definition.Start = -1 },
				"was segmented": func(f *sequence.Floor) { f.Created.Start = 9 },
				"name":          func(f *sequence.Floor) { f.Name = "A" },
				"SHA-256":       func(f *sequence.Floor) { f.Index, f.Next = f.Index-1, f.Next-3 },
				"most is 92233": func(f *sequence.Floor) { f.Index = 1 << 63; *f = sequence.Sealed(*f) },
			} {
				bad := floor
				change(&bad)
				err := sequence.Import(ctx, storetest.NewMemory(), bad)
				require.ErrorIs(t, err, stores.Refused)
				require.ErrorContains(t, err, strings.ReplaceAll(want, "segmented", mode.String()))
			}
		})
	}
}

// TestNewerVersion has a newer version write the cell. A process of this version says so, hands
// out its reserve, and never writes the cell.
func TestNewerVersion(t *testing.T) {
	for begin, says := range map[string]string{
		`{"format":2,`: "its format is 2, and this process reads format 1", `{"format":1,"more":[1],`: `its field "more" is unknown to this process`,
	} {
		ctx, store := t.Context(), storetest.NewMemory()
		s := open(t, store, "orders", sequence.Definition{Start: 1, MinStep: 5, MaxStep: 5}, sequence.WithOutage(0), quiet)
		require.EqualValues(t, 1, next(t, s))
		cell := store.Peek("seq/orders")
		_, err := store.Swap(ctx, cell.Key, cell.Version, bytes.Replace(cell.Value, []byte(`{"format":1,`), []byte(begin), 1))
		require.NoError(t, err)
		cell = store.Peek("seq/orders")
		require.EqualValues(t, 2, nextN(t, s, 4))
		_, next := s.Next(ctx)
		_, opened := sequence.Open(ctx, store, "orders")
		_, _, set := sequence.Set(ctx, store, "orders", sequence.Change{Next: 100})
		_, deleted := sequence.Delete(ctx, store, "orders")
		_, exported := sequence.Export(ctx, store, "orders", "new")
		_, listed := sequence.List(ctx, store)
		created := sequence.Create(ctx, store, "orders", sequence.Definition{})
		for _, err := range []error{next, opened, set, deleted, exported, listed, created} {
			require.ErrorIs(t, err, stores.ErrDamaged)
			assert.ErrorContains(t, err, "seq/orders")
			assert.ErrorContains(t, err, says)
			assert.ErrorContains(t, err, "upgrade this process")
			assert.NotContains(t, err.Error(), "delete")
		}
		require.ErrorIs(t, s.Close(), sequence.ErrNotGivenBack) // its last write may have landed before
		assert.Equal(t, cell, store.Peek("seq/orders"))
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

package sequence_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestCreateAgain(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory()
	d := sequence.Definition{Start: 1, Max: 999, MinStep: 5}
	require.NoError(t, sequence.Create(ctx, store, "orders", d))
	require.NoError(t, sequence.Create(ctx, store, "orders", d))
	for _, other := range []sequence.Definition{
		{Start: 2, Max: 999, MinStep: 5},
		{Start: 1, Max: 998, MinStep: 5},
		{Start: 1, Max: 999, MinStep: 6},
		{Start: 1, Max: 999, MinStep: 5, MaxStep: 7},
		{Start: 1, Max: 999, MinStep: 5, Mode: sequence.Ordered},
		{Start: 1, Max: 999, MinStep: 5, Stride: sequence.Every(2, 0)},
	} {
		err := sequence.Create(ctx, store, "orders", other)
		var differs *sequence.DefinitionError
		require.ErrorAs(t, err, &differs)
		assert.Equal(t, stores.Refused, stores.KindOf(err))
		assert.Equal(t, d.Max, differs.Theirs.Max)
		assert.NotEqual(t, differs.Ours, differs.Theirs)
		_, err = sequence.Open(ctx, store, "orders", sequence.WithDefinition(other))
		assert.ErrorAs(t, err, &differs)
	}
	_, _, err := sequence.Set(ctx, store, "orders", sequence.Change{Max: 5000})
	require.NoError(t, err)
	assert.NoError(t, sequence.Create(ctx, store, "orders", d), "as it was created")
	d.Max = 5000
	assert.NoError(t, sequence.Create(ctx, store, "orders", d), "as it is now")
}

// TestCreateAtOnce has two processes create one sequence at the same time, and writes of
// unknown outcome.
func TestCreateAtOnce(t *testing.T) {
	for _, fault := range []storetest.Fault{storetest.None, storetest.ReplyLost, storetest.Delayed, storetest.Unavailable} {
		store := storetest.NewMemory()
		other := store.Client()
		store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
			if op.Kind != storetest.OpSwap {
				return storetest.None
			}
			if fault == storetest.None {
				assert.NoError(t, sequence.Create(t.Context(), other, "orders", sequence.Definition{}))
			}
			return fault
		}
		err := sequence.Create(t.Context(), store, "orders", sequence.Definition{})
		if fault == storetest.None || fault == storetest.ReplyLost {
			assert.NoError(t, err, fault)
		} else {
			assert.ErrorIs(t, err, sequence.ErrStore, fault)
		}
	}
}

// TestBadInput checks that each is refused, and that nothing is changed in the store.
func TestBadInput(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory()
	s := open(t, store, "orders", sequence.Definition{Start: 10, Max: 1000, Stride: sequence.Every(5, 3)})
	assert.EqualValues(t, 13, nextN(t, s, 3))
	require.NoError(t, s.Close())
	before := store.Peek("seq/orders")
	var none stores.Store
	create := func(d sequence.Definition) error {
		err := sequence.Create(ctx, store, "other", d)
		if checked := d.Check(); err == nil {
			assert.NoError(t, checked)
		} else if assert.Error(t, checked, err) {
			assert.ErrorContains(t, err, checked.Error())
		}
		return err
	}
	set := func(c sequence.Change) error { _, _, err := sequence.Set(ctx, store, "orders", c); return err }
	opened := func(options ...sequence.Option) error {
		_, err := sequence.Open(ctx, store, "orders", options...)
		return err
	}
	name := func(name string) error { return sequence.Create(ctx, store, name, sequence.Definition{}) }
	s = open(t, store, "orders", sequence.Definition{Start: 10, Max: 1000, Stride: sequence.Every(5, 3)})
	tests := []struct {
		err  error
		want string
	}{
		{name(""), "0 bytes, want 1 to 64"},
		{name(strings.Repeat("x", 65)), "65 bytes, want 1 to 64"},
		{name("Orders"), `"Orders" holds 'O'`},
		{name("a/b"), `holds '/'`},
		{name(".."), `"..": want a name`},
		{name("ordérs"), `holds 'é'`},
		{create(sequence.Definition{Start: -1}), "start -1: want 0 or more"},
		{create(sequence.Definition{Start: 5, Max: 4}), "start 5 plus offset 0 is above the maximum 4"},
		{create(sequence.Definition{Start: 4, Max: 5, Stride: sequence.Every(3, 2)}), "start 4 plus offset 2 is above the maximum 5"},
		{create(sequence.Definition{Max: -1}), "above the maximum -1"},
		{create(sequence.Definition{Max: 1 << 62}), "maximum 4611686018427387904 is above 4611686018427387902, the last number"},
		{create(sequence.Definition{Start: 1, Stride: sequence.Every(2, 0), Max: math.MaxInt64}), "is above 9223372036854775805, the last number"},
		{create(sequence.Definition{MinStep: -1}), "steps of -1 to 1000000"},
		{create(sequence.Definition{MinStep: 9, MaxStep: 8}), "steps of 9 to 8"},
		{create(sequence.Definition{MaxStep: math.MaxInt64}), "steps of 16 to 9223372036854775807"},
		{create(sequence.Definition{Stride: sequence.Every(0, 0)}), ""},
		{create(sequence.Definition{Stride: sequence.Every(-2, 0)}), "stride"},
		{create(sequence.Definition{Stride: sequence.Every(2, 2)}), "offset 2 with stride 2: want 0 to 1"},
		{create(sequence.Definition{Stride: sequence.Every(2, -1)}), "offset -1 with stride 2"},
		{create(sequence.Definition{Stride: sequence.Every(math.MaxInt64, 0)}), "stride 9223372036854775807"},
		{create(sequence.Definition{Mode: 7}), "mode Mode(7): want segmented or ordered"},
		{set(sequence.Change{}), "nothing is to be changed"},
		{set(sequence.Change{Next: 13}), "13 is below 28"},
		{set(sequence.Change{Next: 1}), "1 is below the first number: give 13 or more"},
		{set(sequence.Change{Next: -5}), "-5: want a number up to the maximum 1000"},
		{set(sequence.Change{Next: 1001}), "1001: want a number up to the maximum 1000"},
		{set(sequence.Change{Next: 999}), "999: the sequence has no number from there to the maximum 1000"},
		{set(sequence.Change{Max: 9}), "above the maximum 9"},
		{set(sequence.Change{Max: math.MaxInt64 - 1}), "is above 9223372036854775803, the last number"},
		{set(sequence.Change{Max: 20}), "the maximum 20 is below 23"},
		{set(sequence.Change{MinStep: 7, MaxStep: 6}), "steps of 7 to 6"},
		{opened(nil), "option 1 of 1 is nil"},
		{opened(sequence.WithTimeout(0)), "WithTimeout: timeout of 0s"},
		{opened(sequence.WithOutage(-1)), "WithOutage: outage of -1ns"},
		{opened(sequence.WithLogger(nil)), "WithLogger: logger is nil"},
		{opened(sequence.WithClock(nil)), "WithClock: clock is nil"},
		{sequence.Create(ctx, none, "orders", sequence.Definition{}), "store: is nil"},
		{func() error { _, err := s.NextN(ctx, 0); return err }(), "n: 0 numbers"},
		{func() error { _, err := s.NextN(ctx, -1); return err }(), "n: -1 numbers"},
		{func() error { _, err := s.NextN(ctx, 196); return err }(), "has 195 numbers left up to its maximum 1000, and the call asked for 196"},
		{func() error { _, err := sequence.Inspect(ctx, store, "absent"); return err }(), `sequence "absent": no such sequence`},
		{func() error { _, err := sequence.Open(ctx, store, "absent"); return err }(), "create it"},
		{func() error { _, err := sequence.Delete(ctx, store, "absent"); return err }(), "no such sequence"},
		{func() error {
			_, _, err := sequence.Set(ctx, store, "absent", sequence.Change{Next: 1})
			return err
		}(), "no such sequence"},
	}
	for i, tt := range tests {
		if tt.want == "" {
			assert.NoError(t, tt.err, i)
			continue
		}
		require.ErrorContains(t, tt.err, tt.want)
		assert.Equal(t, stores.Refused, stores.KindOf(tt.err), tt.err)
		assert.NotContains(t, tt.err.Error(), "\n")
	}
	assert.Equal(t, before, store.Peek("seq/orders"))
}

func TestEditedCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		s := open(t, store, "orders", sequence.Definition{MinStep: 2, MaxStep: 2})
		open(t, store, "other", sequence.Definition{})
		next(t, s)
		synctest.Wait()
		cell := store.Peek("seq/orders")
		edited := strings.Replace(string(cell.Value), `"segmented"`, `"fast"`, 1)
		version, err := store.Swap(t.Context(), "seq/orders", cell.Version, []byte(edited))
		require.NoError(t, err)
		for err = nil; err == nil; {
			_, err = s.Next(t.Context())
		}
		require.ErrorIs(t, err, stores.ErrDamaged)
		require.ErrorContains(t, err, `mode "fast"`)
		_, err = sequence.Open(t.Context(), store, "orders")
		require.ErrorIs(t, err, stores.ErrDamaged)
		require.ErrorIs(t, sequence.Create(t.Context(), store, "orders", sequence.Definition{}), stores.ErrDamaged)
		infos, err := sequence.List(t.Context(), store)
		require.ErrorIs(t, err, stores.ErrDamaged)
		require.Len(t, infos, 1)
		assert.Equal(t, "other", infos[0].Name)
		assert.Equal(t, version, store.Peek("seq/orders").Version)

		_, err = store.Swap(t.Context(), "seq/orders", version, cell.Value)
		require.NoError(t, err)
		time.Sleep(time.Second)
		next(t, s)
		require.NoError(t, s.Close())
	})
}

// TestResentCreate has a driver send a creation twice. In between another process takes
// numbers of the new sequence, and it is deleted. So the second creation makes another
// sequence: that process fails with ErrDeleted, and does not take it for a lost write.
func TestResentCreate(t *testing.T) {
	memory := storetest.NewMemory()
	var b *sequence.Sequence
	store := resending{memory, new(atomic.Bool), func() {
		b = open(t, memory, "orders", sequence.Definition{}, sequence.WithOutage(0))
		nextN(t, b, 100)
		_, err := sequence.Delete(t.Context(), memory, "orders")
		assert.NoError(t, err)
	}}
	store.lost.Store(true)
	a := open(t, store, "orders", sequence.Definition{})
	_, err := b.Next(t.Context())
	assert.ErrorIs(t, err, sequence.ErrDeleted)
	assert.EqualValues(t, 100, next(t, a))
}

// TestCreateAnew deletes sequences that were granted numbers, and creates others: each begins
// above all that were granted before.
func TestCreateAnew(t *testing.T) {
	ctx := t.Context()
	every := func(n, by, offset int64) sequence.Definition {
		return sequence.Definition{Mode: sequence.Ordered, Start: n, Stride: sequence.Every(by, offset)}
	}
	start := func(n int64) sequence.Definition { return every(n, 1, 0) }
	for name, tt := range map[string]struct {
		deleted []sequence.Definition // in their order; each is granted 7 numbers
		d       sequence.Definition
		options []sequence.CreateOption
		want    int64 // 0: refused
	}{
		"the same":                       {[]sequence.Definition{start(1)}, start(1), nil, 8},
		"a lower start":                  {[]sequence.Definition{start(5)}, start(1), nil, 12},
		"a start above":                  {[]sequence.Definition{start(1)}, start(50), nil, 50},
		"another mode":                   {[]sequence.Definition{start(1)}, sequence.Definition{Start: 1}, nil, 8},
		"of a stride":                    {[]sequence.Definition{every(1, 10, 3)}, start(1), nil, 65},
		"with a stride":                  {[]sequence.Definition{start(1)}, every(1, 5, 2), nil, 8},
		"with a stride that skips":       {[]sequence.Definition{start(1)}, every(1, 5, 1), nil, 12},
		"after two":                      {[]sequence.Definition{start(1000), start(1)}, start(1), nil, 1014},
		"after one with a wide stride":   {[]sequence.Definition{start(1), every(1, 100, 0)}, start(1), nil, 702},
		"at its maximum":                 {[]sequence.Definition{start(1)}, sequence.Definition{Start: 1, Max: 8}, nil, 8},
		"no number is left":              {[]sequence.Definition{start(1)}, sequence.Definition{Start: 1, Max: 7}, nil, 0},
		"the last number of all granted": {[]sequence.Definition{start(math.MaxInt64 - 6)}, start(1), nil, 0},
		"from the start":                 {[]sequence.Definition{start(5)}, start(1), []sequence.CreateOption{sequence.FromStart()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := storetest.NewMemory()
			above := int64(0)
			for _, d := range tt.deleted {
				s := open(t, store, "orders", d, sequence.WithPolling())
				above = max(above, nextN(t, s, 7)+6*d.Stride.By()+1)
				require.NoError(t, s.Close())
				_, err := sequence.Delete(ctx, store, "orders")
				require.NoError(t, err)
			}
			err := sequence.Create(ctx, store, "orders", tt.d, tt.options...)
			if tt.want == 0 {
				require.ErrorIs(t, err, stores.Refused)
				require.ErrorContains(t, err, "none is left")
				return
			}
			require.NoError(t, err)
			require.NoError(t, sequence.Create(ctx, store, "orders", tt.d), "again")
			info, err := sequence.Inspect(ctx, store, "orders")
			require.NoError(t, err)
			assert.Equal(t, tt.want, info.Next)
			assert.Equal(t, tt.d.Start, info.Definition.Start, "as given")

			_, err = sequence.Delete(ctx, store, "orders")
			require.NoError(t, err)
			require.NoError(t, sequence.Create(ctx, store, "orders", start(1)))
			info, err = sequence.Inspect(ctx, store, "orders")
			require.NoError(t, err)
			assert.Equal(t, above, info.Next, "after one that was granted nothing")

			_, err = sequence.Delete(ctx, store, "orders")
			require.NoError(t, err)
			require.NoError(t, sequence.Create(ctx, store, "orders", start(1), sequence.FromStart()))
			floor, err := sequence.Export(ctx, store, "orders", "new")
			require.NoError(t, err)
			moved := storetest.NewMemory()
			require.NoError(t, sequence.Import(ctx, moved, floor))
			_, err = sequence.Delete(ctx, moved, "orders")
			require.NoError(t, err)
			require.NoError(t, sequence.Create(ctx, moved, "orders", start(1)))
			info, err = sequence.Inspect(ctx, moved, "orders")
			require.NoError(t, err)
			assert.Equal(t, above, info.Next, "after a move")
		})
	}
}

// TestSetWhileRunning changes steps and the next number under a running process.
func TestSetWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), storetest.NewMemory()
		s := open(t, store, "orders", sequence.Definition{Start: 1, MinStep: 2, MaxStep: 2, Stride: sequence.Every(10, 4)})
		next(t, s)
		synctest.Wait()
		before, after, err := sequence.Set(ctx, store, "orders", sequence.Change{Next: 1001, MinStep: 50, MaxStep: 60})
		require.NoError(t, err)
		assert.Equal(t, []int64{45, 1005}, []int64{before.Next, after.Next}, "the next that the stride allows")
		var got []int64
		for range 6 {
			got = append(got, next(t, s))
			synctest.Wait() // the refill, if there is one, counts only the numbers issued so far
		}
		assert.Equal(t, []int64{15, 25, 35, 1005, 1015, 1025}, got)
		info, err := sequence.Inspect(ctx, store, "orders")
		require.NoError(t, err)
		assert.EqualValues(t, 2005, info.Next)
		require.NoError(t, s.Close())
	})
}

func TestSetUnknownOutcome(t *testing.T) {
	store := storetest.NewMemory()
	require.NoError(t, sequence.Create(t.Context(), store, "orders", sequence.Definition{}))
	store.Fail(storetest.None, 1)
	store.Fail(storetest.ReplyLost, 1)
	_, after, err := sequence.Set(t.Context(), store, "orders", sequence.Change{Next: 7})
	require.NoError(t, err)
	assert.EqualValues(t, 7, after.Next)
	store.Fail(storetest.None, 1)
	store.Fail(storetest.Unavailable, 1)
	_, _, err = sequence.Set(t.Context(), store, "orders", sequence.Change{Next: 9})
	require.ErrorIs(t, err, sequence.ErrStore)
	store.Fail(storetest.None, 1)
	store.Fail(storetest.ReplyLost, 1)
	_, err = sequence.Delete(t.Context(), store, "orders")
	require.NoError(t, err)
}

func TestList(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory()
	for _, name := range []string{"b", "a.1", "z-_"} {
		require.NoError(t, sequence.Create(ctx, store, name, sequence.Definition{Start: 3}))
	}
	infos, err := sequence.List(ctx, store)
	require.NoError(t, err)
	require.Len(t, infos, 3)
	assert.Equal(t, sequence.Info{
		Name:       "a.1",
		Definition: sequence.Definition{Start: 3, Max: 1<<62 + 1, Stride: sequence.Every(1, 0), MinStep: 16, MaxStep: 1_000_000},
		Next:       3, Last: 2, Left: 1<<62 - 1, Writes: 1,
	}, infos[0])
}

func TestDefinitionJSON(t *testing.T) {
	for _, d := range []sequence.Definition{
		{}, {Start: 5, Max: 9, Mode: sequence.Ordered}, {Stride: sequence.Every(2, 0), MinStep: 3, MaxStep: 4}, {Stride: sequence.Every(2, 1)},
		{Start: 1, Stride: sequence.Every(3, 0), Max: math.MaxInt64}, // the last number that it can reach
	} {
		text, err := json.Marshal(d)
		require.NoError(t, err)
		var got sequence.Definition
		require.NoError(t, json.Unmarshal(text, &got))
		assert.Equal(t, d, got, string(text))
	}
	for _, text := range []string{`{"stride":2}`, `{"offset":1}`, `{"mode":"fast"}`, `{"start":"1"}`} {
		var d sequence.Definition
		assert.Error(t, json.Unmarshal([]byte(text), &d), text)
	}
	assert.Equal(t, "segmented, from 1, steps of 16 to 1000000", sequence.Definition{Start: 1}.String())
	assert.Equal(t, "ordered, from 1 to 99, stride 2 with offset 1", sequence.Definition{Start: 1, Max: 99, Mode: sequence.Ordered, Stride: sequence.Every(2, 1)}.String())
}

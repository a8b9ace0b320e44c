package sequence_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// TestCreate creates a sequence again, with the same definition and with others, and while another
// process creates it or the outcome is unknown.
func TestCreate(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory()
	d := sequence.Definition{Start: 1, Max: 999, MinStep: 5}
	require.NoError(t, sequence.Create(ctx, store, "orders", d))
	for _, change := range []func(d *sequence.Definition){
		func(d *sequence.Definition) { d.Start = 2 }, func(d *sequence.Definition) { d.Max = 998 },
		func(d *sequence.Definition) { d.MinStep = 6 }, func(d *sequence.Definition) { d.MaxStep = 7 },
		func(d *sequence.Definition) { d.Mode = ordered }, func(d *sequence.Definition) { d.Stride = sequence.Every(2, 0) },
		func(d *sequence.Definition) { d.Period = sequence.Daily },
	} {
		other := d
		change(&other)
		var differs *sequence.DefinitionError
		err := sequence.Create(ctx, store, "orders", other)
		require.ErrorAs(t, err, &differs)
		assert.Equal(t, stores.Permanent, stores.KindOf(err))
		assert.Equal(t, d.Max, differs.Theirs.Max)
		assert.NotEqual(t, differs.Ours, differs.Theirs)
	}
	require.NoError(t, set(t, store, sequence.Change{Max: 5000}))
	assert.NoError(t, sequence.Create(ctx, store, "orders", d), "as it was created")
	d.Max = 5000
	assert.NoError(t, sequence.Create(ctx, store, "orders", d), "as it is now")

	for fault, want := range map[storetest.Fault]error{
		storetest.None: nil, storetest.ReplyLost: nil, storetest.Delayed: sequence.ErrStore, storetest.Unavailable: sequence.ErrStore,
	} {
		store := storetest.NewMemory()
		other := store.Client()
		store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
			if op.Kind == storetest.OpSwap && fault == storetest.None {
				assert.NoError(t, sequence.Create(ctx, other, "orders", sequence.Definition{}))
			} else if op.Kind == storetest.OpSwap {
				return fault
			}
			return storetest.None
		}
		assert.ErrorIs(t, sequence.Create(ctx, store, "orders", sequence.Definition{}), want, fault)
	}
	swaps, other := 0, store.Client()
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpSwap {
			if swaps++; swaps == 8 {
				return storetest.ReplyLost
			}
			assert.NoError(t, set(t, other, sequence.Change{MaxStep: int64(100 + swaps)}))
		}
		return storetest.None
	}
	assert.NoError(t, set(t, store, sequence.Change{Max: 6000}), "the last try has landed")
	assert.ErrorContains(t, sequence.Create(ctx, lying{storetest.NewMemory()}, "orders", d), "it ignores conditions")
}

// lying is a store whose probe finds that the server breaks its promises.
type lying struct{ *storetest.Memory }

func (lying) Traits() stores.Traits {
	return stores.Traits{Probe: func(context.Context, bool) error { return stores.Permanent.New("it ignores conditions") }}
}

// TestBadInput checks that each is refused, and that nothing is changed in the store.
func TestBadInput(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory()
	d := sequence.Definition{Start: 10, Max: 1000, Stride: sequence.Every(5, 3)}
	s := open(t, store, d)
	assert.EqualValues(t, 13, nextN(t, s, 3))
	require.NoError(t, s.Close())
	before := store.Peek("seq/orders")
	var none stores.Store
	create := func(d sequence.Definition) error {
		err := sequence.Create(ctx, store, "other", d)
		if checked := d.Validate(); err == nil {
			assert.NoError(t, checked)
		} else if assert.Error(t, checked, err) {
			assert.ErrorContains(t, err, checked.Error())
		}
		return err
	}
	change := func(c sequence.Change) error { return set(t, store, c) }
	opened := func(options ...sequence.Option) error { return second(sequence.Open(ctx, store, "orders", options...)) }
	name := func(name string) error { return sequence.Create(ctx, store, name, sequence.Definition{}) }
	s = open(t, store, d)
	for i, tt := range []struct {
		err  error
		want string
	}{
		{name(""), "0 bytes, want 1 to 64"},
		{name(strings.Repeat("x", 65)), "65 bytes, want 1 to 64"},
		{name("Orders"), `"Orders" holds 'O'`},
		{name("a/b"), `holds '/'`},
		{name(".."), `"..": want a name`},
		{name("ordérs"), `holds 'é'`},
		{create(sequence.Definition{Start: -1}), "start -1: want 1 or more, or FromZero alone"},
		{create(sequence.Definition{Start: 1, FromZero: true}), "FromZero alone"},
		{create(sequence.Definition{Start: 5, Max: 4}), "start 5 plus offset 0 is above the maximum 4"},
		{create(sequence.Definition{Start: 4, Max: 5, Stride: sequence.Every(3, 2)}), "start 4 plus offset 2 is above the maximum 5"},
		{create(sequence.Definition{Max: -1}), "above the maximum -1"},
		{create(sequence.Definition{Max: 1 << 62}), "maximum 4611686018427387904 is above 4611686018427387903, the last number"},
		{create(sequence.Definition{Start: 1, Stride: sequence.Every(2, 0), Max: math.MaxInt64}), "is above 9223372036854775805, the last number"},
		{create(sequence.Definition{MinStep: -1}), "steps of -1 to 1000000"},
		{create(sequence.Definition{MinStep: 9, MaxStep: 8}), "steps of 9 to 8"},
		{create(sequence.Definition{MaxStep: math.MaxInt64}), "steps of 16 to 9223372036854775807"},
		{create(sequence.Definition{Stride: sequence.Every(0, 0)}), ""},
		{create(sequence.Definition{Stride: sequence.Every(-2, 0)}), "stride"},
		{create(sequence.Definition{Stride: sequence.Every(2, 2)}), "offset 2 with stride 2: want 0 to 1"},
		{create(sequence.Definition{Stride: sequence.Every(2, -1)}), "offset -1 with stride 2"},
		{create(sequence.Definition{Stride: sequence.Every(math.MaxInt64, 0)}), "stride 9223372036854775807"},
		{create(sequence.Definition{Mode: "fast"}), `mode "fast": want segmented or ordered`},
		{change(sequence.Change{}), "nothing is to be changed"},
		{change(sequence.Change{Next: 13}), "13 is below 28"},
		{change(sequence.Change{Next: 1}), "1 is below the first number: give 13 or more"},
		{change(sequence.Change{Next: -5}), "-5: want a number up to the maximum 1000"},
		{change(sequence.Change{Next: 1001}), "1001: want a number up to the maximum 1000"},
		{change(sequence.Change{Next: 999}), "999: the sequence has no number from there to the maximum 1000"},
		{change(sequence.Change{Max: 9}), "above the maximum 9"},
		{change(sequence.Change{Max: math.MaxInt64 - 1}), "is above 9223372036854775803, the last number"},
		{change(sequence.Change{Max: 20}), "the maximum 20 is below 23"},
		{change(sequence.Change{MinStep: 7, MaxStep: 6}), "steps of 7 to 6"},
		{opened(sequence.WithDefinition(sequence.Definition{Period: sequence.Daily})), "it is by period, daily: want OpenPeriods"},
		{opened(nil), "option 1 of 1 is nil"},
		{opened(sequence.WithTimeout(0)), "WithTimeout: timeout of 0s"},
		{opened(sequence.WithOutage(-1)), "WithOutage: outage of -1ns"},
		{opened(sequence.WithLogger(nil)), "WithLogger: logger is nil"},
		{sequence.Create(ctx, none, "orders", sequence.Definition{}), "store: is nil: give the store that stores.Open returns"},
		{second(s.NextN(ctx, 0)), "n: 0 numbers"},
		{second(s.NextN(ctx, -1)), "n: -1 numbers"},
		{second(s.NextN(ctx, 196)), "has 195 numbers left up to its maximum 1000, and the call asked for 196"},
		{second(sequence.Inspect(ctx, store, "absent")), `sequence "absent": no such sequence`},
		{second(sequence.Open(ctx, store, "absent")), "create it"},
		{second(sequence.Delete(ctx, store, "absent")), "no such sequence"},
	} {
		if tt.want == "" {
			assert.NoError(t, tt.err, i)
			continue
		}
		require.ErrorContains(t, tt.err, tt.want)
		assert.Equal(t, stores.Permanent, stores.KindOf(tt.err), tt.err)
		assert.NotContains(t, tt.err.Error(), "\n")
	}
	assert.Equal(t, before, store.Peek("seq/orders"))
}

// TestAnotherPeriod has the advice for a name whose sequence has another period: what raises a number does not help.
func TestAnotherPeriod(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory()
	plain, yearly, monthly := sequence.Definition{}, sequence.Definition{Period: sequence.Yearly}, sequence.Definition{Period: sequence.Monthly}
	require.NoError(t, sequence.Create(ctx, store, "plain", plain))
	require.NoError(t, sequence.Create(ctx, store, "yearly", yearly))
	for _, tt := range []struct {
		err  error
		want string
	}{
		{second(sequence.OpenPeriods(ctx, store, "plain", sequence.Yearly)), "not by period: Open opens it"},
		{second(sequence.Open(ctx, store, "yearly", sequence.WithDefinition(plain))), "by period: OpenPeriods opens it"},
		{sequence.Create(ctx, store, "yearly", monthly), "its period never changes"},
		{sequence.Create(ctx, store, "plain", sequence.Definition{Start: 7}), "tickflake sequence set plain --next N"},
	} {
		require.ErrorAs(t, tt.err, new(*sequence.DefinitionError))
		require.ErrorContains(t, tt.err, tt.want)
		assert.Equal(t, strings.HasPrefix(tt.want, "tickflake"), strings.Contains(tt.err.Error(), "--next"), tt.err)
	}
}

// TestUnreadableCell has a cell edited by hand, damaged, or written by a newer version. Its errors tell which
// cell it is and what to do; a process hands out its reserve, and never writes the cell.
func TestUnreadableCell(t *testing.T) {
	const newer, begin = "a newer version of tickflake wrote it", `{"format":1,`
	for edit, says := range map[[2]string]string{
		{begin, `{"format":2,`}:            newer + ": its format is 2, and this process reads format 1: upgrade this process",
		{begin, `{"format":1,"more":[1],`}: newer + `: its field "more" is unknown to this process: upgrade this process`,
		{begin, "rubbish"}:                 `it begins with "rubbish`,
		{"segmented", "fast"}:              `mode "fast": want segmented or ordered; it was edited by hand`,
	} {
		ctx, store := t.Context(), storetest.NewMemory()
		require.NoError(t, sequence.Create(ctx, store, "other", sequence.Definition{}))
		s := open(t, store, sequence.Definition{Start: 1, MinStep: 5, MaxStep: 5}, sequence.WithOutage(0))
		require.EqualValues(t, 1, next(t, s))
		cell := store.Peek("seq/orders")
		must(store.Swap(ctx, cell.Key, cell.Version, bytes.Replace(cell.Value, []byte(edit[0]), []byte(edit[1]), 1)))
		cell = store.Peek("seq/orders")
		require.EqualValues(t, 2, nextN(t, s, 4))
		infos, listed := sequence.List(ctx, store)
		require.Equal(t, []sequence.Info{must(sequence.Inspect(ctx, store, "other"))}, infos)
		for _, err := range []error{
			second(s.Next(ctx)), second(sequence.Open(ctx, store, "orders")), set(t, store, sequence.Change{Next: 100}), remove(t, store),
			sequence.Create(ctx, store, "orders", sequence.Definition{}), listed,
		} {
			require.ErrorIs(t, err, stores.ErrDamaged)
			assert.ErrorContains(t, err, `"seq/orders" is damaged: `)
			assert.ErrorContains(t, err, says)
			assert.Equal(t, !strings.Contains(says, newer), strings.Contains(err.Error(), "delete"), err)
		}
		require.ErrorIs(t, s.Close(), sequence.ErrNotGivenBack) // its last write may have landed before
		assert.Equal(t, cell, store.Peek("seq/orders"))
	}
}

// TestCreateAnew deletes sequences that were granted numbers, and creates others: each begins
// above all that were granted before.
func TestCreateAnew(t *testing.T) {
	ctx := t.Context()
	every := func(n, by, offset int64) sequence.Definition {
		return sequence.Definition{Mode: ordered, Start: n, Stride: sequence.Every(by, offset)}
	}
	start := func(n int64) sequence.Definition { return every(n, 1, 0) }
	for i, tt := range []struct {
		deleted []sequence.Definition // in their order; each is granted 7 numbers
		d       sequence.Definition
		want    int64 // 0: refused
	}{
		{[]sequence.Definition{start(5)}, start(1), 12},
		{[]sequence.Definition{start(1)}, start(50), 50},
		{[]sequence.Definition{every(1, 10, 3)}, sequence.Definition{Start: 1}, 65},
		{[]sequence.Definition{start(1)}, every(1, 5, 2), 8},
		{[]sequence.Definition{start(1)}, every(1, 5, 1), 12},
		{[]sequence.Definition{start(1000), start(1)}, start(1), 1014},
		{[]sequence.Definition{start(1)}, sequence.Definition{Start: 1, Max: 8}, 8},
		{[]sequence.Definition{start(1)}, sequence.Definition{Start: 1, Max: 7}, 0},
		{[]sequence.Definition{start(math.MaxInt64 - 6)}, start(1), 0},
	} {
		store := storetest.NewMemory()
		above := int64(0)
		for _, d := range tt.deleted {
			require.NoError(t, sequence.Create(ctx, store, "orders", d))
			s := open(t, store, d, sequence.WithOutage(0))
			above = max(above, nextN(t, s, 7)+6*d.Stride.By()+1)
			require.NoError(t, s.Close())
			require.NoError(t, remove(t, store))
		}
		if tt.want == 0 {
			err := sequence.Create(ctx, store, "orders", tt.d)
			require.ErrorIs(t, err, stores.Permanent)
			require.ErrorContains(t, err, "none is left")
			continue
		}
		for n, d := range []sequence.Definition{tt.d, start(1)} {
			require.NoError(t, sequence.Create(ctx, store, "orders", d))
			assert.Equal(t, []int64{tt.want, above}[n], inspect(t, store).Next, "%d", i)
			require.NoError(t, remove(t, store)) // it was granted nothing
		}
	}
}

func TestDefinitionJSON(t *testing.T) {
	for _, d := range []sequence.Definition{
		{}, {FromZero: true, Period: sequence.Daily}, {Start: 5, Max: 9, Mode: ordered}, {Stride: sequence.Every(2, 0), MinStep: 3, MaxStep: 4}, {Stride: sequence.Every(2, 1)},
	} {
		text := must(json.Marshal(d))
		var got sequence.Definition
		require.NoError(t, json.Unmarshal(text, &got))
		assert.Equal(t, d, got, string(text))
	}
	for _, text := range []string{`{"stride":2}`, `{"stride":{"by":2}}`, `{"stride":{"by":2,"offset":null}}`, `{"stride":{"offset":1}}`, `{"start":"1"}`, `{"period":"X"}`} {
		assert.Error(t, json.Unmarshal([]byte(text), new(sequence.Definition)), text)
	}
	assert.Equal(t, "segmented, from 1, 16 to 1000000 reserved at a time", sequence.Definition{}.String())
	assert.Equal(t, "ordered, from 0", sequence.Definition{FromZero: true, Mode: ordered}.String())
	assert.Equal(t, "ordered, from 1 to 99, stride 2 with offset 1", sequence.Definition{Start: 1, Max: 99, Mode: ordered, Stride: sequence.Every(2, 1)}.String())
}

// TestDelete deletes a sequence that processes use, and continues it in another store. Each operation fails once
// before, with and without an effect, and what the processes have sent lands later.
func TestDelete(t *testing.T) {
	created := sequence.Definition{Start: 10, Stride: sequence.Every(3, 1), Max: 1000, MinStep: 5, MaxStep: 5}
	for n, done := 0, false; !done; n++ {
		old := storetest.NewMemory()
		var processes []*sequence.Sequence
		issued := map[int64]bool{}
		take := func(s *sequence.Sequence) error {
			number, err := s.Next(t.Context())
			if err == nil {
				require.False(t, issued[number], "%d comes twice", number)
				issued[number] = true
			}
			return err
		}
		for range 3 {
			process := open(t, old, created, sequence.WithOutage(0))
			require.NoError(t, take(process))
			processes = append(processes, process)
		}
		require.NoError(t, set(t, old, sequence.Change{Max: 2000}))

		calls, faulty := 0, old.Client()
		faulty.Before = func(context.Context, storetest.Op) storetest.Fault {
			if calls++; calls > n/2 {
				return []storetest.Fault{storetest.Unavailable, storetest.ReplyLost}[n%2]
			}
			return storetest.None
		}
		info, err := sequence.Delete(t.Context(), faulty, "orders")
		if done = err == nil; !done {
			require.ErrorIs(t, err, sequence.ErrStore)
			info = must(sequence.Delete(t.Context(), old, "orders"))
		}
		require.Equal(t, info, must(sequence.Delete(t.Context(), old, "orders")), "it can be called again")
		require.ErrorIs(t, second(sequence.Open(t.Context(), old, "orders")), sequence.ErrDeleted)
		require.ErrorIs(t, second(sequence.Open(t.Context(), old, "orders", sequence.WithDefinition(created))), sequence.ErrDeleted, "no program makes it anew")

		d, ok := info.Continued()
		require.True(t, ok)
		require.Equal(t, sequence.Definition{Mode: segmented, Start: 55, Stride: sequence.Every(3, 1), Max: 2000, MinStep: 5, MaxStep: 5}, d)
		to := open(t, storetest.NewMemory(), d)
		require.EqualValues(t, 56, next(t, to))
		for _, process := range processes {
			for err = take(process); err == nil; err = take(process) {
			}
			require.ErrorIs(t, err, sequence.ErrDeleted)
		}
		require.Len(t, issued, 15, "the processes use up what they have")
		require.NotContains(t, issued, int64(56))
		require.NoError(t, processes[0].Close())
		require.ErrorIs(t, set(t, old, sequence.Change{Next: 700}), sequence.ErrNotFound)
	}
	store := storetest.NewMemory()
	require.NoError(t, sequence.Create(t.Context(), store, "orders", sequence.Definition{Start: 1, Period: sequence.Yearly}))
	d, ok := must(sequence.Delete(t.Context(), store, "orders")).Continued()
	require.True(t, ok)
	require.EqualValues(t, []any{int64(1), sequence.Yearly}, []any{d.Start, d.Period})
	require.ErrorIs(t, second(sequence.OpenPeriods(t.Context(), store, "orders", sequence.Yearly, sequence.WithDefinition(d))), sequence.ErrDeleted)
	store = storetest.NewMemory()
	nextN(t, open(t, store, sequence.Definition{Max: 1}, sequence.WithOutage(0)), 1)
	_, ok = must(sequence.Delete(t.Context(), store, "orders")).Continued()
	require.False(t, ok, "no number is left")
}

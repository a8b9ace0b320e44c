package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Invoices begin at 1 each year. The instant of the invoice decides the year, in its own location.
func ExampleOpenPeriods() {
	ctx := context.Background()
	store := storetest.NewMemory()
	invoices, err := sequence.OpenPeriods(ctx, store, "invoices", sequence.Yearly, // or Monthly, Daily
		sequence.WithDefinition(sequence.Definition{Max: 999_999, MaxStep: 100})) // a crash loses at most 200
	if err != nil {
		log.Fatal(err)
	}
	defer invoices.Close()
	midnight := time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{
		midnight.Add(-time.Second), midnight, midnight.Add(-time.Minute), midnight.Add(time.Hour),
		midnight.In(time.FixedZone("New York", -5*60*60)),
	} {
		number, err := invoices.Next(ctx, at)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("INV-%d-%06d\n", at.Year(), number) // INV-2027-000042
	}
	// Output:
	// INV-2026-000001
	// INV-2027-000001
	// INV-2026-000002
	// INV-2027-000002
	// INV-2026-000003
}

func openPeriods(t testing.TB, store stores.Store, options ...sequence.Option) *sequence.Periods {
	t.Helper()
	options = append([]sequence.Option{quiet, sequence.WithOutage(0), sequence.WithDefinition(sequence.Definition{})}, options...)
	return must(sequence.OpenPeriods(t.Context(), store, "orders", sequence.Yearly, options...))
}

func year(n int) time.Time { return time.Date(n, time.July, 1, 0, 0, 0, 0, time.UTC) }

// TestPeriodsAtOnce makes a period, on demand or by its name, and at each of its steps another process does something, or the store
// fails. No number comes twice, and none makes a deleted period anew.
func TestPeriodsAtOnce(t *testing.T) {
	type other struct {
		take   func(years ...int)
		delete func(name string)
	}
	for name, test := range map[string]struct {
		fault storetest.Fault
		do    func(other)
	}{
		"the same":         {do: func(o other) { o.take(2028) }},
		"others":           {do: func(o other) { o.take(2029, 2027) }},
		"it, and deletion": {do: func(o other) { o.take(2028); o.delete("orders.2028") }},
		"the definition":   {do: func(o other) { o.delete("orders"); o.take(2026) }},
		"away":             {fault: storetest.Unavailable},
		"reply lost":       {fault: storetest.ReplyLost},
		"late":             {fault: storetest.Delayed},
	} {
		for step, done, byName := 0, false, false; !done || !byName; step++ {
			if done {
				step, byName = 0, true
			}
			memory, deleted := storetest.NewMemory(), ""
			issued := map[string]bool{}
			take := func(p *sequence.Periods, in int) error {
				number, err := p.Next(t.Context(), year(in))
				if text := fmt.Sprint(in, number); err == nil {
					require.False(t, issued[text], "%s, step %d: %s comes twice", name, step, text)
					issued[text] = true
				}
				return err
			}
			a, client := openPeriods(t, memory), memory.Client()
			b := openPeriods(t, client)
			require.NoError(t, take(a, 2026))
			ops := 0
			client.Before = func(context.Context, storetest.Op) storetest.Fault {
				if ops++; ops-1 != step {
					return storetest.None
				}
				if test.do != nil {
					test.do(other{func(years ...int) {
						for _, in := range years {
							require.NoError(t, take(a, in), "%s, step %d", name, step)
						}
					}, func(name string) {
						must(sequence.Delete(t.Context(), memory, name))
						deleted = name
					}})
				}
				return test.fault
			}
			var err error
			if !byName {
				err = take(b, 2028)
			} else if err = sequence.Create(t.Context(), client, "orders.2028", sequence.Definition{}); err == nil {
				deleted = strings.TrimSuffix(deleted, "orders.2028")
				err = take(a, 2028)
			}
			done = ops <= step
			switch {
			case err == nil:
				require.NotEqual(t, "orders.2028", deleted, "%s, step %d", name, step)
			case deleted != "" && errors.Is(err, sequence.ErrNotFound), test.fault != storetest.None && errors.Is(err, sequence.ErrStore):
			default:
				require.NoError(t, err, "%s, step %d", name, step)
			}
			for len(memory.Late()) > 0 {
				memory.Deliver(0)
			}
			for in := 2026; in < 2030; in++ {
				err := take(a, in)
				for err == nil && in == 2028 && deleted == "orders.2028" {
					err = take(a, in) // what it has reserved
				}
				if deleted == "" || err != nil && in == 2026 {
					require.NoError(t, err)
				} else if err != nil {
					require.ErrorIs(t, err, sequence.ErrNotFound)
				}
			}
		}
	}
}

// TestPeriodIsAsDefined creates periods by their names.
func TestPeriodIsAsDefined(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory()
	d := sequence.Definition{Start: 1000, Max: 1002}
	yearly := d
	yearly.Period = sequence.Yearly
	require.NoError(t, sequence.Create(ctx, store, "orders", yearly))
	refused := func() {
		t.Helper()
		other, ok := errors.AsType[*sequence.DefinitionError](sequence.Create(ctx, store, "orders.2027", sequence.Definition{}))
		require.True(t, ok)
		require.Equal(t, "orders", other.Name)
		require.Equal(t, sequence.Yearly, other.Theirs.Period)
		_, err := sequence.Inspect(ctx, store, "orders.2027")
		require.ErrorIs(t, err, sequence.ErrNotFound)
	}
	refused()
	_, _, err := sequence.Set(ctx, store, "orders.2027", sequence.Change{Max: 1003})
	require.ErrorContains(t, err, "its first number makes it")
	require.Zero(t, must(sequence.Inspect(ctx, store, "orders")).Left)
	above := sequence.Definition{Start: 1000, Max: 2000}
	require.ErrorAs(t, sequence.Create(ctx, store, "orders.2027", above), new(*sequence.DefinitionError), "it was not deleted")
	require.NoError(t, sequence.Create(ctx, store, "orders.2027", d))
	must(sequence.Delete(ctx, store, "orders.2027"))
	refused()
	d.Max = 0
	_, ok := errors.AsType[*sequence.DefinitionError](sequence.Create(ctx, store, "orders.2027", d))
	require.True(t, ok, "a maximum that is not named is no higher one")
	require.NoError(t, sequence.Create(ctx, store, "orders.2027", above))
	require.NoError(t, sequence.Create(ctx, store, "orders.draft", sequence.Definition{}), "it is no period")
}

// TestPeriodsLimits has more periods in use than are open at once, and one that is deleted while it is open.
func TestPeriodsLimits(t *testing.T) {
	ctx, store := t.Context(), storetest.NewMemory()
	require.NoError(t, sequence.Create(ctx, store, "orders.1998", sequence.Definition{}))
	large := sequence.Definition{MinStep: 100}
	p := openPeriods(t, store, sequence.WithDefinition(large))
	take := func(in int) int64 { return must(p.Next(ctx, year(in))) }
	for round := range int64(2) {
		for in := range 2 * sequence.MaxOpenPeriods {
			require.Equal(t, 1+round, take(2000+in), "a period that was closed has given its numbers back")
			take(2100)
			require.LessOrEqual(t, len(p.Stats()), sequence.MaxOpenPeriods)
		}
	}
	require.NoError(t, p.Restored(ctx))
	assert.ErrorIs(t, second(p.NextN(ctx, year(1990), 0)), stores.Permanent)
	assert.ErrorContains(t, second(p.NextN(ctx, time.Time{}, 1)), "it is the zero time")
	assert.ErrorIs(t, second(sequence.Inspect(ctx, store, "orders.1990")), sequence.ErrNotFound)
	must(sequence.Delete(ctx, store, "orders.2014"))
	for range 2 {
		assert.ErrorIs(t, second(p.Next(ctx, year(2014))), sequence.ErrNotFound)
		assert.ErrorIs(t, second(sequence.Open(ctx, store, "orders.2014")), sequence.ErrNotFound)
	}
	require.NoError(t, sequence.Create(ctx, store, "orders.2014", large))
	assert.Greater(t, take(2014), int64(2), "above all that were granted before")
	assert.Zero(t, testing.AllocsPerRun(10, func() { take(2014) }), "it is open")
	require.NoError(t, p.Close())
	assert.Empty(t, p.Stats())
	assert.EqualValues(t, 102, must(sequence.Inspect(ctx, store, "orders.2015")).Next, "Restored gave the segment from 2 on up")
	assert.ErrorIs(t, second(p.Next(ctx, year(2015))), sequence.ErrClosed)
	assert.NoError(t, p.Close())

	p = openPeriods(t, store, sequence.WithDefinition(large))
	take(2015)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	closeOnce := sync.OnceFunc(func() { assert.ErrorIs(t, p.CloseContext(ended), sequence.ErrNotGivenBack) })
	store.Before = func(_ context.Context, op storetest.Op) storetest.Fault {
		if op.Key == "seq/orders.2016" {
			closeOnce()
		}
		return storetest.None
	}
	for range 2 {
		assert.ErrorIs(t, second(p.Next(ctx, year(2016))), sequence.ErrClosed, "it is closed while it opens a period, and stays so")
	}
	assert.NoError(t, p.Close(), "it has given all back since")
}

// TestPeriodsApart: no call waits for the store on behalf of another period, neither while that is opened nor while
// it is closed for a new one, which is the one that was not used for the longest time.
func TestPeriodsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		var hanging atomic.Value // a key
		p := openPeriods(t, store, sequence.WithDefinition(sequence.Definition{MinStep: 10}), sequence.WithTimeout(2*time.Second))
		store.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
			if op.Key == hanging.Load() {
				<-ctx.Done()
			}
			return storetest.None
		}
		at := func(in int) (int64, time.Duration, error) {
			began := time.Now()
			number, err := p.Next(t.Context(), year(in))
			return number, time.Since(began), err
		}
		take := func(in int, want int64) {
			t.Helper()
			number, took, err := at(in)
			require.NoError(t, err)
			require.Equal(t, []any{want, time.Duration(0)}, []any{number, took})
		}
		take(2000, 1)
		hanging.Store("seq/orders.2001")
		opening := make(chan error)
		go func() { opening <- second(p.Next(t.Context(), year(2001))) }()
		synctest.Wait()
		take(2000, 2)
		take(2002, 1)
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, second(p.Next(short, year(2001))), context.DeadlineExceeded)
		require.Equal(t, 200*time.Millisecond, time.Since(began), "another call opens it")
		require.ErrorIs(t, <-opening, sequence.ErrStore)
		require.ErrorIs(t, p.Err(), sequence.ErrStore)
		hanging.Store("")
		for in := 2003; in < 2001+sequence.MaxOpenPeriods; in++ {
			take(in, 1)
		}
		take(2000, 3)
		require.NoError(t, p.Err())
		hanging.Store("seq/orders.2002")
		take(2020, 1) // and 2002 is closed for it, which hangs
		require.Contains(t, p.Stats(), "2000")
		require.NotContains(t, p.Stats(), "2002")
		take(2000, 4)
		synctest.Wait()
		hanging.Store("")
		number, took, err := at(2002)
		require.NoError(t, err)
		require.Equal(t, []any{int64(11), 2 * time.Second}, []any{number, took}, "it opens when the close is over, which failed here")
		hanging.Store("seq/orders.2002")
		go func() { opening <- second(p.NextN(t.Context(), year(2002), 20)) }()
		synctest.Wait()
		for in := range sequence.MaxOpenPeriods {
			take(2030+in, 1)
		}
		hanging.Store("")
		require.NoError(t, <-opening, "its period was closed for others, and opened again")
		require.NoError(t, p.Close())
	})
}

// TestPeriodsCloseTwice: each call of Close returns the error of the first, soon after its context has ended.
func TestPeriodsCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, fault := faulty()
		p := openPeriods(t, store, sequence.WithDefinition(sequence.Definition{MinStep: 10}))
		must(p.Next(t.Context(), year(2026)))
		must(p.Next(t.Context(), year(2027)))
		fault(hangs)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		require.ErrorIs(t, p.CloseContext(ended), context.Canceled)
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, second(p.Next(t.Context(), year(2026))), sequence.ErrClosed)
		first := p.Close()
		require.ErrorIs(t, first, sequence.ErrNotGivenBack)
		require.Less(t, time.Since(began), 3*drive.DefaultTimeout, "they are closed at once, and not one after the other")
		require.Equal(t, first, p.Close())
		require.ErrorIs(t, p.Err(), sequence.ErrClosed)
	})
}

// TestPeriodNames: which names periods have, and which are made on demand.
func TestPeriodNames(t *testing.T) {
	ctx := t.Context()
	none := func(time.Time) string { return "" }
	fiscal := func(at time.Time) string { return fmt.Sprintf("fy%d", at.AddDate(0, 3, 0).Year()%100) }
	for _, tt := range []struct {
		period sequence.Period
		at     time.Time
		want   string // a name, or a part of the error
		made   []string
		not    []string
	}{
		{sequence.Yearly, year(2027), "2027", []string{"0001", "9999"}, []string{"27", "02027", "x", "2027-01", ""}},
		{sequence.Monthly, year(2027), "2027-07", []string{"2028-12"}, []string{"2028-13", "2028-1", "2028"}},
		{sequence.Daily, year(2027), "2027-07-01", []string{"2028-02-29"}, []string{"2027-02-29", "2028-02-29."}},
		{sequence.NewPeriod("fiscal", fiscal), year(2027), "fy27", nil, []string{"fy28", "2028"}},
		{sequence.Yearly, year(10000), "is not yearly: want a name such as 2027", nil, nil},
		{sequence.NewPeriod("fiscal", none), year(2027), "want 1 to 32 characters and no dot", nil, nil},
		{sequence.NewPeriod("fiscal", func(time.Time) string { return "2027.1" }), year(2027), "no dot", nil, nil},
		{sequence.NewPeriod("fiscal", func(time.Time) string { return strings.Repeat("x", 33) }), year(2027), "want 1 to 32", nil, nil},
		{sequence.NewPeriod("fiscal", func(time.Time) string { return "FY" }), year(2027), "'F'", nil, nil},
		{sequence.NewPeriod("Fiscal", fiscal), year(2027), `period "Fiscal": want yearly, monthly, daily, or`, nil, nil},
		{sequence.NewPeriod("weekly", nil), year(2027), "or NewPeriod with another kind and a function", nil, nil},
		{sequence.Period{}, year(2027), "or NewPeriod", nil, nil},
		{sequence.NewPeriod("yearly", fiscal), year(2027), "or NewPeriod with another kind", nil, nil},
	} {
		store := storetest.NewMemory()
		options := []sequence.Option{sequence.WithDefinition(sequence.Definition{Mode: ordered})}
		p, err := sequence.OpenPeriods(ctx, store, "orders", tt.period, options...)
		if err == nil {
			_, err = p.Next(ctx, tt.at)
		}
		if err != nil {
			require.ErrorContains(t, err, tt.want)
			require.ErrorIs(t, err, stores.Permanent)
			continue
		}
		require.NoError(t, second(sequence.Open(ctx, store, "orders."+tt.want)))
		for _, name := range tt.made {
			require.NoError(t, second(sequence.Open(ctx, store, "orders."+name)), name)
		}
		for _, name := range tt.not {
			require.ErrorIs(t, second(sequence.Open(ctx, store, "orders."+name)), sequence.ErrNotFound, name)
		}
		_, _, set := sequence.Set(ctx, store, "orders", sequence.Change{Next: 7})
		for _, err := range []error{set, second(sequence.Open(ctx, store, "orders"))} {
			require.ErrorIs(t, err, sequence.ErrByPeriod)
		}
		require.ErrorAs(t, second(sequence.OpenPeriods(ctx, store, "orders."+tt.want, sequence.Yearly)), new(*sequence.DefinitionError))
		require.NoError(t, remove(t, store))
		require.NoError(t, second(p.Next(ctx, tt.at)), "it was made before")
		err = second(p.Next(ctx, tt.at.AddDate(1, 0, 0)))
		require.ErrorIs(t, err, sequence.ErrNotFound)
		require.ErrorContains(t, err, `"orders.`)
	}
	monthly := sequence.WithDefinition(sequence.Definition{Period: sequence.Monthly})
	require.ErrorContains(t, second(sequence.OpenPeriods(ctx, storetest.NewMemory(), "orders", sequence.Yearly, monthly)), "it is by period, monthly, and the period to open is yearly")
	require.NoError(t, second(sequence.OpenPeriods(ctx, storetest.NewMemory(), "orders", sequence.Monthly, monthly)))
	long := strings.Repeat("x", 60)
	require.ErrorContains(t, sequence.Create(ctx, storetest.NewMemory(), long, sequence.Definition{Period: sequence.Yearly}), "65 bytes")
}

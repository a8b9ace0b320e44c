package issuer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	"github.com/tickflake/tickflake/strategies"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// newIssuer returns an issuer with a store and without clients.
func newIssuer(t *testing.T, change func(*Config), options ...generator.Option) *Issuer {
	t.Helper()
	g, err := generator.New(append([]generator.Option{generator.WithNode(1)}, options...)...)
	require.NoError(t, err)
	c := Config{
		Generator: g, Store: storetest.NewMemory(),
		Rules:     []Rule{{"new-", sequence.Definition{Start: 7}}, {"num-", sequence.Definition{Mode: sequence.Ordered, Max: 3}}, {"new", sequence.Definition{Start: 100}}}, // the first that fits counts
		Sequences: []sequence.Option{quiet}, Logger: slog.New(slog.DiscardHandler),
		Serve: seam.Serve{MaxBatch: 100, MaxNumbers: 1000, MaxSequences: 10, Timeout: time.Second, UseWithin: time.Second},
	}
	if change != nil {
		change(&c)
	}
	i := New(c)
	t.Cleanup(func() {
		_ = i.Close(context.Background()) // tests that look at its error call it first
		assert.NoError(t, g.Close())
	})
	return i
}

// bubble runs a test with fake time. It begins at noon: the layout has no IDs of 2000.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon))
		f(t)
	})
}

// named returns a client with a token.
func named(name, token string, may Rights) *Client {
	return NewClient(name, sha256.Sum256([]byte(token)), may)
}

var quiet = sequence.WithLogger(slog.New(slog.DiscardHandler))

func codeOf(t *testing.T, err error) wire.Code {
	t.Helper()
	require.Error(t, err)
	r, ok := errors.AsType[*Refusal](err)
	require.True(t, ok, "%T: %v", err, err)
	return r.Code
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil)
	const secret = "postgres://root@10.1.2.3"
	in := func(err error) error { return fmt.Errorf("%s: %w", secret, err) }
	for _, c := range []struct {
		err    error
		code   wire.Code
		retry  time.Duration
		hidden bool // the cause
	}{
		{&generator.LeadError{Cause: strategies.Exhausted, Lead: 30 * time.Millisecond, Limit: 10 * time.Millisecond}, wire.Busy, 20 * time.Millisecond, false},
		{&generator.LeadError{Cause: strategies.Behind, Lead: time.Second}, wire.Busy, time.Second, false},
		{&generator.LeadError{}, wire.Busy, i.Layout().Tick, false},
		{lease.ErrEndOfTime, wire.OutOfRange, 0, false},
		{&sequence.ExhaustedError{}, wire.OutOfRange, 0, false},
		{in(generator.ErrClosed), wire.Unavailable, time.Second, true},
		{in(sequence.ErrClosed), wire.Unavailable, time.Second, true},
		{in(generator.ErrNotGranted), wire.Unavailable, time.Second, true},
		{sequence.ErrNotFound, wire.NotFound, 0, false},
		{sequence.ErrDeleted, wire.NotFound, 0, false},
		{in(stores.ErrWentBack), wire.Failed, 0, true},
		{in(stores.ErrDamaged), wire.Failed, 0, true},
		{in(stores.Permanent), wire.Failed, 0, true},
		{in(sequence.ErrStore), wire.Unavailable, time.Second, true},
		{in(sequence.ErrTimeout), wire.Unavailable, time.Second, true},
		{fmt.Errorf("%w: %w", sequence.ErrStore, in(stores.Permanent)), wire.Failed, 0, true},
		{in(context.DeadlineExceeded), wire.Unavailable, time.Second, true},
		{i.timeout, wire.Unavailable, time.Second, false},
		{context.Canceled, wire.Canceled, 0, false},
		{in(errors.New("odd")), wire.Internal, 0, true},
	} {
		r := RefusalOf(i.refuse(c.err))
		assert.Equal(t, c.code, r.Code, "%T %v", c.err, c.err)
		assert.Equal(t, c.retry, r.RetryAfter, "%T %v", c.err, c.err)
		if c.hidden {
			assert.NotContains(t, r.Error(), secret)
		}
	}
	moved := i.refuse(&generator.GrantError{Err: in(lease.ErrMoved)})
	assert.NotContains(t, moved.Error(), secret)
	assert.Zero(t, moved.RetryAfter, "a repetition is in vain")
	// The log has the cause of what an operator has to mend.
	assert.Contains(t, Cause(i.refuse(in(errors.New("odd")))), secret)
	assert.Equal(t, wire.Internal, RefusalOf(errors.New(secret)).Code)
	assert.NotContains(t, RefusalOf(errors.New(secret)).Error(), secret)
}

// The time of a run counts from its tick, where that lies ahead of the clock.
func TestUseWithinOfBorrowedIDs(t *testing.T) {
	t.Parallel()
	clock := clocktest.NewMock(noon)
	i := newIssuer(t, func(c *Config) { c.MaxBatch = 1 << 20 }, generator.WithClock(clock), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
	per := int64(1) << i.Layout().SequenceBits
	runs, err := i.Runs(t.Context(), i.Anyone(), 5*per, 0, nil)
	require.NoError(t, err)
	for _, run := range runs {
		d, err := i.Decode(run.First)
		require.NoError(t, err)
		assert.Equal(t, time.Second+d.Time.Sub(noon), i.UseWithin(run))
	}
	assert.Greater(t, i.UseWithin(runs[len(runs)-1]), i.UseWithin(runs[0]))
}

// Connections of a client share its rate, and the wait that it is told is long enough.
func TestRate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		i := newIssuer(t, func(c *Config) {
			c.Clients = []*Client{named("shop", "a", Rights{IDs: true, Rate: 10, Burst: 20, Sequences: []string{"new-*"}})}
		})
		one, err := i.Authenticate("a", false)
		require.NoError(t, err)
		two, err := i.Authenticate("a", false)
		require.NoError(t, err)
		_, err = i.Runs(t.Context(), one, 15, 0, nil)
		require.NoError(t, err)
		_, err = i.Number(t.Context(), two, "new-x", 5)
		require.NoError(t, err)
		_, err = i.ID(t.Context(), two)
		require.Equal(t, wire.Busy, codeOf(t, err))
		assert.InDelta(t, 0.1, RefusalOf(err).RetryAfter.Seconds(), 0.001)
		assert.ErrorContains(t, err, "client shop is above its rate of 10 per second: wait 100ms")
		time.Sleep(100 * time.Millisecond)
		_, err = i.ID(t.Context(), two)
		require.NoError(t, err, "what was refused has used nothing up")
		_, _, err = i.Last(t.Context(), one, "new-x")
		assert.Equal(t, wire.Busy, codeOf(t, err), "it asks the store")
		ids, numbers := i.Largest(one)
		assert.Equal(t, []int64{20, 20}, []int64{ids, numbers}, "a client that asks for no more is not refused")
	})
}

// A client that asks for much on many connections does not hold up another one for longer than a few ticks.
func TestTurns(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		i := newIssuer(t, func(c *Config) {
			c.MaxBatch, c.Timeout = 10_000, time.Hour
			c.Clients = []*Client{named("shop", "a", Rights{IDs: true}), named("blog", "b", Rights{IDs: true})}
		}, generator.WithStrategy(strategies.Wait()))
		shop, err := i.Authenticate("a", false)
		require.NoError(t, err)
		blog, err := i.Authenticate("b", false)
		require.NoError(t, err)
		var large sync.WaitGroup
		for range 400 {
			large.Go(func() {
				runs, err := i.Runs(t.Context(), shop, 10_000, 0, nil)
				assert.NoError(t, err)
				assert.NotEmpty(t, runs)
			})
		}
		synctest.Wait()
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err = i.Runs(gone, shop, 10_000, 0, nil)
		assert.Equal(t, wire.Canceled, codeOf(t, err))
		short, end := context.WithTimeout(t.Context(), time.Millisecond)
		defer end()
		_, err = i.Runs(short, shop, 10_000, 0, nil)
		assert.Equal(t, wire.Busy, codeOf(t, err), "the client's own doing, and no fault of the server")
		began := time.Now()
		_, err = i.ID(t.Context(), blog)
		require.NoError(t, err)
		assert.Less(t, time.Since(began), 5*time.Millisecond)
		large.Wait()
	})
}

// IDs after one that was seen are above it, also if they are several. One that lies too far ahead is refused,
// and moves nothing, although the strategy would borrow for an hour; where the generator stands further
// ahead by itself, so may one that was seen.
func TestAfter(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"41/10/12", "time=41,sequence=12,node=10,tick=1ms,epoch=2025-01-01"} {
		layout, err := snowflake.ParseLayout(spec)
		require.NoError(t, err)
		const most, week = 100 * time.Millisecond, 168 * time.Hour
		clock := clocktest.NewMock(noon)
		i := newIssuer(t, func(c *Config) { c.MaxAfter, c.MaxBatch = most, 1<<20 }, generator.WithLayout(layout), generator.WithClock(clock), generator.WithStrategy(strategies.BorrowUpTo(time.Hour)))
		at := func(lead time.Duration) snowflake.ID {
			id, err := layout.Max(noon.Add(lead))
			require.NoError(t, err)
			return id
		}
		after := func(seen snowflake.ID) (snowflake.ID, error) {
			runs, err := i.Runs(t.Context(), i.Anyone(), 1, seen, nil)
			if err != nil {
				return 0, err
			}
			return runs[0].First, nil
		}
		for lead, retry := range map[time.Duration]time.Duration{most + time.Millisecond: time.Millisecond, time.Hour: time.Hour - most, week: maxWait} {
			_, err := after(at(lead))
			assert.Equal(t, wire.Busy, codeOf(t, err), "%s", lead)
			assert.Equal(t, retry, RefusalOf(err).RetryAfter, "%s", lead)
		}
		id, err := i.ID(t.Context(), i.Anyone())
		require.NoError(t, err)
		assert.Less(t, id, at(0), "nothing has moved")
		last, err := layout.Compose(layout.End().Add(-1), 1, 1<<12-1)
		require.NoError(t, err)
		for seen, code := range map[snowflake.ID]wire.Code{-1: wire.BadInput, math.MaxInt64: wire.OutOfRange, last: wire.OutOfRange, last - 1: wire.Busy} {
			_, err = after(seen)
			assert.Equal(t, code, codeOf(t, err), "%d", seen)
		}
		id, err = after(at(most))
		require.NoError(t, err)
		assert.Greater(t, id, at(most))
		runs, err := i.Runs(t.Context(), i.Anyone(), 5000, id, nil)
		require.NoError(t, err)
		last, n := id, int64(0)
		for _, run := range runs {
			assert.Greater(t, run.First, last)
			assert.Equal(t, runs[len(runs)-1].Stride, run.Stride)
			last, n = run.Last(), n+run.Count
		}
		assert.EqualValues(t, 5000, n)

		_, err = i.Runs(t.Context(), i.Anyone(), 1<<20, 0, nil)
		require.NoError(t, err)
		id, err = i.ID(t.Context(), i.Anyone())
		require.NoError(t, err)
		above, err := after(id)
		require.NoError(t, err)
		assert.Greater(t, above, id)
		lead := i.config.Generator.Stats().Lead
		for range 100 { // the largest ID of the tick in which it stands, again and again
			seen, err := layout.Max(noon.Add(i.config.Generator.Stats().Lead))
			require.NoError(t, err)
			_, err = after(seen)
			require.Equal(t, wire.Busy, codeOf(t, err))
		}
		assert.Equal(t, lead, i.config.Generator.Stats().Lead)
	}
}

// An issuer is ready while its grant has a tick left, and again when a call would be served where its
// generator stands ahead of the clock.
func TestReady(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		layout, err := snowflake.ParseLayout("time=20,node=10,sequence=12,tick=1ms,epoch=2026-05-04T11:59:00Z")
		require.NoError(t, err)
		seen, err := layout.Min(time.Now().Add(5 * time.Second))
		require.NoError(t, err)
		i := newIssuer(t, nil, generator.WithLayout(layout), generator.WithFloor(seen), generator.WithStrategy(strategies.WaitUpTo(10*time.Second)))
		refusal := RefusalOf(i.Ready())
		assert.Equal(t, wire.Unavailable, refusal.Code)
		assert.InDelta(t, 4*time.Second, refusal.RetryAfter, float64(time.Millisecond), "the timeout is 1s")
		time.Sleep(refusal.RetryAfter)
		assert.NoError(t, i.Ready())
		time.Sleep(time.Until(layout.End()) - layout.Tick/2) // the grant of a fixed node number
		assert.ErrorContains(t, i.Ready(), "the grant has 500µs left, and readiness asks for 1ms")
		time.Sleep(layout.Tick)
		assert.ErrorContains(t, i.Ready(), "no time is left in the layout", "the reason, and not that 0s are left")
	})
}

func refusal(code wire.Code) Request {
	return Request{Method: "INCR", Err: &Refusal{Code: code, Err: errors.New("away")}}
}

// Refused requests are logged, a few per second for each code, and long errors are cut.
func TestRefusedLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bytes.Buffer{}
		o, lines := NewObserver(slog.New(slog.NewTextHandler(b, nil))), func() []string {
			defer b.Reset()
			return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		}
		for range 100 {
			o.Done(refusal(wire.BadInput))
			o.Done(refusal(wire.Canceled))
		}
		o.Done(refusal(wire.Unavailable))
		o.Done(Request{Err: &Refusal{Code: wire.Internal, Err: &hidden{errInternal, errors.New("10.9.8.7 refused the connection")}}})
		found := lines()
		require.Len(t, found, limit.LogLines+2)
		assert.Contains(t, found[0], "level=INFO")
		assert.Contains(t, found[limit.LogLines], "level=WARN")
		assert.Contains(t, found[limit.LogLines+1], "level=ERROR")
		assert.Contains(t, found[limit.LogLines+1], "10.9.8.7", "the cause, which clients do not see")
		assert.NotContains(t, found[limit.LogLines+1], "see the server's log", "this is the log")
		time.Sleep(time.Second)
		o.Done(refusal(wire.BadInput))
		require.Len(t, lines(), 1)
		o.Done(Request{Err: &Refusal{Err: errors.New(strings.Repeat("é", 100_000))}})
		assert.Less(t, len(lines()[0]), 2*limit.LogText)
	})
}

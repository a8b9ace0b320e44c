package issuer

import (
	"context"
	"errors"
	"runtime"
	"sync"
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

func TestNumbers(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, nil)
	ctx, anyone := t.Context(), i.Anyone()
	require.NoError(t, sequence.Create(ctx, i.config.Store, "even", sequence.Definition{Mode: sequence.Ordered, Stride: sequence.Every(2, 0)}))
	got, err := i.Number(ctx, anyone, "even", 3)
	require.NoError(t, err)
	assert.Equal(t, Numbers{First: 0, Last: 4, Count: 3, Stride: 2, Mode: sequence.Ordered}, got)
	got, err = i.Number(ctx, anyone, "new-a", 1)
	require.NoError(t, err)
	assert.Equal(t, Numbers{First: 7, Last: 7, Count: 1, Stride: 1, Mode: sequence.Segmented}, got)

	_, err = i.Number(ctx, anyone, "other", 1)
	require.Equal(t, NotFound, codeOf(t, err))
	assert.ErrorContains(t, err, "create it in the store of the servers, with 'tickflake sequence create other'")
	assert.Equal(t, 2, i.Count(), "a name that does not exist takes no place")
	_, err = i.Inspect(ctx, anyone, "other")
	assert.Equal(t, NotFound, codeOf(t, err))
	for _, n := range []int64{0, -1, 1001} {
		_, err = i.Number(ctx, anyone, "even", n)
		assert.Equal(t, BadInput, codeOf(t, err))
	}
	_, err = i.Number(ctx, anyone, "a b", 1)
	assert.Equal(t, BadInput, codeOf(t, err))
	info, err := i.Inspect(ctx, anyone, "even")
	require.NoError(t, err)
	assert.EqualValues(t, 4, info.Last)

	none := newIssuer(t, func(c *Config) { c.Store = nil })
	_, err = none.Number(ctx, none.Anyone(), "even", 1)
	assert.Equal(t, NotFound, codeOf(t, err))
}

func TestMaxSequences(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *Config) { c.MaxSequences = 2 })
	ctx, anyone := t.Context(), i.Anyone()
	for _, name := range []string{"new-a", "new-b", "new-a"} {
		_, err := i.Number(ctx, anyone, name, 1)
		require.NoError(t, err)
	}
	_, err := i.Number(ctx, anyone, "new-c", 1)
	require.Equal(t, Failed, codeOf(t, err))
	assert.ErrorContains(t, err, "open, 2")
	assert.Len(t, i.Open(), 2)
}

// A sequence is dropped once: not by a request that had a sequence of that name before, and not
// after Close.
func TestDroppedOnce(t *testing.T) {
	t.Parallel()
	dropped := 0
	i := newIssuer(t, func(c *Config) {
		c.Opened = func(*sequence.Sequence) func() { return func() { dropped++ } }
	})
	_, err := i.Number(t.Context(), i.Anyone(), "new-a", 1)
	require.NoError(t, err)
	_, err = i.Number(t.Context(), i.Anyone(), "new-b", 1)
	require.NoError(t, err)
	all := i.Open()
	i.drop("new-a", all[1])
	assert.Equal(t, 2, i.Count())
	i.drop("new-a", all[0])
	i.drop("new-a", all[0])
	assert.Equal(t, 1, i.Count())
	require.NoError(t, i.Close(t.Context()))
	i.drop("new-b", all[1])
	assert.Equal(t, 2, dropped)
}

// Two sequences that are opened at the same time do not get each other's definition.
func TestOptionsAreApart(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *Config) {
		c.Sequences = append(make([]sequence.Option, 0, 8), quiet)
		c.Create = append(c.Create, Create{Prefix: "other-"})
	})
	a, b := i.options("new-a"), i.options("other-b")
	require.Len(t, a, 2)
	require.Len(t, b, 2)
	assert.NotSame(t, &a[1], &b[1])
}

// Close does not wait for the timeout of a sequence that is being opened.
func TestCloseEndsOpening(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store := storetest.NewMemory()
		store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
			<-ctx.Done()
			return storetest.Unavailable
		}
		i := newIssuer(t, func(c *Config) { c.Store, c.Timeout = store, time.Hour })
		ended := make(chan error, 1)
		go func() { _, err := i.Number(t.Context(), i.Anyone(), "new-a", 1); ended <- err }()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, i.Close(t.Context()))
		assert.Less(t, time.Since(began), time.Second)
		assert.Equal(t, Unavailable, codeOf(t, <-ended))
	})
}

// While sequences are being opened, one beyond the limit may find a place later: names that
// strangers ask for while the store is away do not refuse others for good.
func TestMaxSequencesWhileOpening(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		store, answer := storetest.NewMemory(), make(chan struct{})
		store.Before = func(context.Context, storetest.Op) storetest.Fault { <-answer; return storetest.None }
		i := newIssuer(t, func(c *Config) { c.Store, c.MaxSequences = store, 1 })
		ended := make(chan error, 1)
		go func() { _, err := i.Number(t.Context(), i.Anyone(), "other", 1); ended <- err }()
		synctest.Wait()
		_, err := i.Number(t.Context(), i.Anyone(), "new-a", 1)
		require.Equal(t, Unavailable, codeOf(t, err))
		assert.Equal(t, time.Second, RefusalOf(err).RetryAfter)
		close(answer)
		assert.Equal(t, NotFound, codeOf(t, <-ended))
		_, err = i.Number(t.Context(), i.Anyone(), "new-a", 1)
		require.NoError(t, err)
		_, err = i.Number(t.Context(), i.Anyone(), "new-b", 1)
		require.Equal(t, Failed, codeOf(t, err))
	})
}

// A sequence that was deleted is forgotten, and the first request after one of its name was
// created is answered by that one.
func TestDeleted(t *testing.T) {
	t.Parallel()
	var opened, dropped atomic.Int64
	i := newIssuer(t, func(c *Config) {
		c.Opened = func(*sequence.Sequence) func() {
			opened.Add(1)
			return func() { dropped.Add(1) }
		}
	})
	ctx, anyone := t.Context(), i.Anyone()
	for want := range int64(3) {
		require.NoError(t, sequence.Create(ctx, i.config.Store, "a", sequence.Definition{Mode: sequence.Ordered}))
		got, err := i.Number(ctx, anyone, "a", 1)
		require.NoError(t, err)
		assert.Equal(t, want, got.First)
		_, err = sequence.Delete(ctx, i.config.Store, "a")
		require.NoError(t, err)
	}
	for range 2 {
		_, err := i.Number(ctx, anyone, "a", 1)
		require.Equal(t, NotFound, codeOf(t, err))
		assert.EqualValues(t, 3, dropped.Load())
		assert.Zero(t, i.Count())
	}
	require.NoError(t, i.Close(ctx))
	assert.EqualValues(t, 3, opened.Load())
	assert.EqualValues(t, 3, dropped.Load())
}

// A rule has no number above those of a sequence that was used up and deleted: its end is the truth.
func TestDeletedAtItsEnd(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, func(c *Config) {
		c.Create = []Create{{Prefix: "num-", Definition: sequence.Definition{Mode: sequence.Ordered, Start: 1, Max: 3}}}
	})
	_, err := i.Number(t.Context(), i.Anyone(), "num-a", 3)
	require.NoError(t, err)
	_, err = sequence.Delete(t.Context(), i.config.Store, "num-a")
	require.NoError(t, err)
	_, err = i.Number(t.Context(), i.Anyone(), "num-a", 1)
	assert.Equal(t, OutOfRange, codeOf(t, err))
	assert.ErrorContains(t, err, "none is left")
}

// One caller opens a sequence. The others wait for it, and one that goes away fails alone.
func TestOpenedOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var opened atomic.Int64
		answer := make(chan struct{})
		store := storetest.NewMemory()
		var first sync.Once
		store.Before = func(context.Context, storetest.Op) storetest.Fault {
			first.Do(func() { <-answer })
			return storetest.None
		}
		i := newIssuer(t, func(c *Config) {
			c.Store, c.Timeout = store, time.Hour
			c.Opened = func(*sequence.Sequence) func() { opened.Add(1); return func() {} }
		})
		gone, leave := context.WithCancel(t.Context())
		errs := make(chan error, 20)
		go func() { _, err := i.Number(gone, i.Anyone(), "new-a", 1); errs <- err }()
		synctest.Wait()
		for range 10 {
			go func() { _, err := i.Number(t.Context(), i.Anyone(), "new-a", 1); errs <- err }()
		}
		synctest.Wait()
		leave() // the one that began
		assert.Equal(t, Canceled, codeOf(t, <-errs))
		close(answer)
		for range 10 {
			assert.NoError(t, <-errs)
		}
		assert.EqualValues(t, 1, opened.Load())
		require.NoError(t, i.Close(t.Context()))
	})
}

// A sequence that cannot be opened is tried again by the next request.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	store := storetest.NewMemory()
	i := newIssuer(t, func(c *Config) {
		c.Store = store
		c.Sequences = []sequence.Option{quiet, sequence.WithTimeout(time.Second)}
	})
	store.Fail(storetest.Unavailable, 1000)
	_, err := i.Number(t.Context(), i.Anyone(), "new-a", 1)
	require.Equal(t, Unavailable, codeOf(t, err))
	assert.Contains(t, Cause(err), storetest.ErrFault.Error())
	assert.NotContains(t, err.Error(), storetest.ErrFault.Error())
	assert.Zero(t, i.Count())
	store.Heal()
	_, err = i.Number(t.Context(), i.Anyone(), "new-a", 1)
	assert.NoError(t, err)
}

// A rule does not refuse a sequence that exists with another definition, and two servers with
// different rules number together what one of them creates.
func TestRuleOfAnother(t *testing.T) {
	t.Parallel()
	ordered := newIssuer(t, func(c *Config) { c.Create[0].Definition = sequence.Definition{Mode: sequence.Ordered, Start: 50} })
	segmented := newIssuer(t, func(c *Config) { c.Store = ordered.config.Store })
	ctx, anyone := t.Context(), ordered.Anyone()
	require.NoError(t, sequence.Create(ctx, ordered.config.Store, "new-old", sequence.Definition{Start: 4712}))
	got, err := ordered.Number(ctx, anyone, "new-old", 2)
	require.NoError(t, err)
	assert.Equal(t, Numbers{First: 4712, Last: 4713, Count: 2, Stride: 1, Mode: sequence.Segmented}, got)

	var both [2]Numbers
	var errs [2]error
	var callers sync.WaitGroup
	for k, i := range []*Issuer{ordered, segmented} {
		callers.Go(func() { both[k], errs[k] = i.Number(ctx, anyone, "new-both", 1) })
	}
	callers.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	assert.Equal(t, both[0].Mode, both[1].Mode)
	assert.NotEqual(t, both[0].First, both[1].First)
}

// A sequence that is being opened while Close runs is closed too, and nothing is opened later.
func TestCloseWhileOpening(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			answer, reading := make(chan struct{}), make(chan struct{})
			store := storetest.NewMemory()
			var first sync.Once
			store.Before = func(ctx context.Context, _ storetest.Op) storetest.Fault {
				first.Do(func() { close(reading); <-answer })
				return storetest.None
			}
			var open atomic.Int64
			i := newIssuer(t, func(c *Config) {
				c.Store, c.Timeout = deaf{store}, time.Hour
				c.Opened = func(*sequence.Sequence) func() {
					open.Add(1)
					return func() { open.Add(-1) }
				}
			})
			failed := make(chan error, 1)
			go func() { _, err := i.Number(t.Context(), i.Anyone(), "new-a", 1); failed <- err }()
			<-reading
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			closed := make(chan error, 1)
			go func() { closed <- i.Close(ctx) }()
			if hangs {
				time.Sleep(2 * time.Minute)
				require.NoError(t, <-closed)
				close(answer)
			} else {
				synctest.Wait()
				close(answer)
				require.NoError(t, <-closed)
			}
			assert.Equal(t, Unavailable, codeOf(t, <-failed))
			synctest.Wait()
			assert.Zero(t, open.Load())
			assert.Empty(t, i.Open())
			_, err := i.Number(t.Context(), i.Anyone(), "new-b", 1)
			assert.Equal(t, Unavailable, codeOf(t, err))
		})
	}
}

// deaf is a store whose operations do not end with their context.
type deaf struct{ stores.Store }

func (d deaf) List(_ context.Context, from, to string, limit int) ([]stores.Cell, error) {
	return d.Store.List(context.Background(), from, to, limit)
}

func (d deaf) Read(_ context.Context, key string) (stores.Cell, error) {
	return d.Store.Read(context.Background(), key)
}

func (d deaf) Swap(_ context.Context, key string, version uint64, value []byte) (uint64, error) {
	return d.Store.Swap(context.Background(), key, version, value)
}

// Requests race with Close: each is served or refused, and no sequence stays open.
func TestCloseAmongRequests(t *testing.T) {
	t.Parallel()
	for range 20 {
		var open atomic.Int64
		i := newIssuer(t, func(c *Config) {
			c.Opened = func(*sequence.Sequence) func() {
				open.Add(1)
				return func() { open.Add(-1) }
			}
		})
		var callers sync.WaitGroup
		for _, name := range []string{"new-a", "new-b", "new-c", "new-d"} {
			callers.Go(func() {
				for {
					_, err := i.Number(context.Background(), i.Anyone(), name, 1)
					if err != nil {
						assert.Equal(t, Unavailable, RefusalOf(err).Code)
						return
					}
				}
			})
		}
		runtime.Gosched()
		require.NoError(t, i.Close(t.Context()))
		callers.Wait()
		assert.Zero(t, open.Load())
		for _, seq := range i.Open() {
			assert.ErrorIs(t, seq.Err(), sequence.ErrClosed)
		}
	}
}

// The error of Close names the sequences that could not give numbers back, but not thousands.
func TestCloseLoses(t *testing.T) {
	t.Parallel()
	store := storetest.NewMemory()
	i := newIssuer(t, func(c *Config) { c.Store, c.MaxSequences = store, 100 })
	for n := range 15 {
		_, err := i.Number(t.Context(), i.Anyone(), "new-"+string(rune('a'+n)), 1)
		require.NoError(t, err)
	}
	store.Fail(storetest.Unavailable, 10_000)
	err := i.Close(t.Context())
	require.ErrorIs(t, err, sequence.ErrNotGivenBack)
	assert.ErrorContains(t, err, "and 5 more sequences")
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	assert.Len(t, joined.Unwrap(), maxLosses+1)
}

// A request that need not wait starts no timer, and one that waits ends with the timeout.
func TestWithin(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		i := newIssuer(t, nil)
		ctx := i.Timeout(t.Context())
		_, err := i.ID(ctx, i.Anyone())
		require.NoError(t, err)
		assert.False(t, ctx.Started())
		_, err = i.Number(ctx, i.Anyone(), "new-a", 1)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		bounded := i.Timeout(t.Context())
		defer bounded.Cancel()
		<-bounded.Done()
		err = i.refuse(context.Cause(bounded))
		assert.Equal(t, Unavailable, codeOf(t, err))
		assert.ErrorContains(t, err, "not served within 1s")
		assert.True(t, errors.Is(bounded.Err(), context.DeadlineExceeded))
	})
}

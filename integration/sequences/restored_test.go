//go:build unix

package sequences

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

const segment = 10 // the step of the segmented sequences here

// user is one process of a sequence that the store forgets.
type user struct {
	*sequence.Sequence
	seam.Poller
	t     testing.TB
	taken map[int64]bool
}

func definition(mode sequence.Mode) sequence.Definition {
	return sequence.Definition{Mode: mode, Start: 1, MinStep: segment, MaxStep: segment}
}

// users opens a sequence for several processes. They poll, so that no refill is out while the
// test changes the store.
func users(t testing.TB, p place, mode sequence.Mode, n int) []*user {
	t.Helper()
	all := make([]*user, n)
	for i := range all {
		all[i] = &user{t: t, taken: map[int64]bool{}}
		q, err := sequence.Open(all[i].In(t.Context()), p.open(t), "orders", sequence.WithTimeout(time.Minute),
			sequence.WithLogger(slog.New(slog.DiscardHandler)), sequence.WithDefinition(definition(mode)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = q.Close() })
		all[i].Sequence = q
	}
	return all
}

// take takes numbers. None is one that it has taken before.
func (u *user) take(n int) {
	u.t.Helper()
	for range n {
		require.NoError(u.t, u.one())
	}
}

func (u *user) one() error {
	number, err := u.Next(u.t.Context())
	if err == nil {
		assert.False(u.t, u.taken[number], "it has issued %d twice", number)
		u.taken[number] = true
		_, _ = u.Poll(u.t.Context()) // what it finds, a later call returns
	}
	return err
}

// failsClosed takes numbers until there is none. There are no more than were reserved.
func (u *user) failsClosed() {
	u.t.Helper()
	for reserved := u.Stats().Reserved; ; reserved-- {
		if err := u.one(); err != nil {
			require.ErrorIs(u.t, err, stores.ErrWentBack)
			break
		}
		require.Positive(u.t, reserved, "it was granted more numbers")
	}
	require.ErrorIs(u.t, u.Err(), stores.ErrWentBack)
	require.Zero(u.t, u.Stats().Reserved)
	require.ErrorIs(u.t, u.one(), stores.ErrWentBack)
}

// twice counts the numbers that were issued more than once.
func twice(all []*user) (n int64) {
	seen := map[int64]bool{}
	for _, u := range all {
		for number := range u.taken {
			if seen[number] {
				n++
			}
			seen[number] = true
		}
	}
	return n
}

// A store is restored from an older copy. Until a process that knows more has read the
// cell, the others issue numbers again: no more than were granted since the copy, and no
// more than they are granted until then. Then all fail closed, until Set.
func testRestored(t *testing.T, p place, mode sequence.Mode) {
	all := users(t, p, mode, 2)
	knows, stays := all[0], all[1]
	stays.take(25)
	knows.take(25)
	copied, err := sequence.Inspect(t.Context(), p.open(t), "orders")
	require.NoError(t, err)
	restore := p.save(t)
	knows.take(70)
	lost, err := sequence.Inspect(t.Context(), p.open(t), "orders")
	require.NoError(t, err)
	require.Zero(t, twice(all))

	restore(t)
	all = append(all, users(t, p, mode, 1)...)
	late := all[2]
	late.take(15)
	stays.take(25)
	granted, err := sequence.Inspect(t.Context(), p.open(t), "orders")
	require.NoError(t, err)
	again := twice(all)
	t.Logf("%d numbers were issued twice; %d were granted since the copy, and %d after it was restored",
		again, lost.Next-copied.Next, granted.Next-copied.Next)
	assert.Positive(t, again, "the test shows nothing")
	assert.LessOrEqual(t, again, lost.Next-copied.Next)
	assert.LessOrEqual(t, again, granted.Next-copied.Next)

	knows.failsClosed()
	assert.NotZero(t, knows.Stats().WentBack)
	reserved := late.Stats().Reserved + stays.Stats().Reserved
	stays.failsClosed()
	late.failsClosed()
	assert.LessOrEqual(t, twice(all), again+reserved)
	goOn(t, p, mode, all)
}

// A store is emptied. The first process that used the sequence leaves its mark, so that a new
// one does not begin again with the first number.
func testEmptied(t *testing.T, p place, mode sequence.Mode) {
	all := users(t, p, mode, 2)
	all[0].take(25)
	all[1].take(25)
	p.clear(t)
	all[0].failsClosed()
	all[1].failsClosed()
	require.Zero(t, twice(all))
	goOn(t, p, mode, all)
}

// A store is emptied, and a new process creates the sequence anew: it issues numbers again
// until a process that knows more has read the cell.
func testCreatedAnew(t *testing.T, p place, mode sequence.Mode) { createdAnew(t, p, mode, 5) }

// The process that knows more cannot take it for a sequence that was deleted, however often
// the new one was written.
func testCreatedAnewAndUsed(t *testing.T, p place, mode sequence.Mode) { createdAnew(t, p, mode, 500) }

func createdAnew(t *testing.T, p place, mode sequence.Mode, numbers int) {
	all := users(t, p, mode, 2)
	all[0].take(25)
	all[1].take(25)
	p.clear(t)
	all = append(all, users(t, p, mode, 1)...)
	late := all[2]
	late.take(numbers)
	again := twice(all)
	t.Logf("%d numbers were issued twice", again)
	assert.Positive(t, again, "the test shows nothing")
	assert.LessOrEqual(t, again, int64(60), "the numbers that were granted before are at most six segments")
	all[0].failsClosed()
	all[1].failsClosed()
	late.failsClosed()
	goOn(t, p, mode, all[:2])
	require.Eventually(t, func() bool { return errors.Is(late.one(), sequence.ErrDeleted) }, time.Minute, 10*time.Millisecond,
		"its sequence is not that of the others")
}

// goOn checks that a sequence is marked, that it is not set back, and that after it was set
// higher all processes issue numbers, none of them twice.
func goOn(t *testing.T, p place, mode sequence.Mode, all []*user) {
	t.Helper()
	store := p.open(t)
	marked, err := sequence.Inspect(t.Context(), store, "orders")
	require.NoError(t, err)
	assert.True(t, marked.WentBack)
	_, err = sequence.Open(t.Context(), store, "orders", sequence.WithDefinition(definition(mode)))
	require.ErrorIs(t, err, stores.ErrWentBack)
	highest := int64(0)
	for _, u := range all {
		for number := range u.taken {
			highest = max(highest, number)
		}
	}
	assert.GreaterOrEqual(t, marked.Last, highest, "it was issued by a process that knows more")
	_, _, err = sequence.Set(t.Context(), store, "orders", sequence.Change{Next: highest})
	require.ErrorIs(t, err, sequence.ErrLowered)
	_, _, err = sequence.Set(t.Context(), store, "orders", sequence.Change{MaxStep: segment + 1})
	require.NoError(t, err, "another change is one, too")
	require.ErrorIs(t, all[0].one(), stores.ErrWentBack, "and it is no leave to go on")

	next := marked.Next + 100
	_, after, err := sequence.Set(t.Context(), store, "orders", sequence.Change{Next: next})
	require.NoError(t, err)
	assert.False(t, after.WentBack)
	all = append(all, users(t, p, mode, 1)...)
	for _, u := range all {
		before := twice(all)
		var err error
		require.Eventually(t, func() bool { err = u.one(); return err == nil }, time.Minute, 10*time.Millisecond, "it does not go on")
		require.NoError(t, err)
		u.take(35)
		assert.Equal(t, before, twice(all))
		assert.NoError(t, u.Close())
	}
	for _, u := range all[:1] {
		for number := range u.taken {
			assert.True(t, number <= highest || number >= next, "%d was issued after the sequence was set to %d", number, next)
		}
	}
}

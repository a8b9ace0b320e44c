package sequencetest

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// A sequence is created once, and again with the same definition. Another one is refused,
// and changes nothing.
func testCreate(s *suite) {
	const name = "orders"
	store, other := s.store(), s.store()
	_, err := sequence.Inspect(s.ctx, store, name)
	s.wants("Inspect without one", err, sequence.ErrNotFound)
	_, err = sequence.Open(s.ctx, store, name)
	s.wants("Open without one", err, sequence.ErrNotFound)
	_, _, err = sequence.Set(s.ctx, store, name, sequence.Change{Next: 7})
	s.wants("Set without one", err, sequence.ErrNotFound)
	_, err = sequence.Delete(s.ctx, store, name)
	s.wants("Delete without one", err, sequence.ErrNotFound)

	is := sequence.Definition{Start: 5, Stride: sequence.Every(2, 1), Max: 1000, MinStep: 10, MaxStep: 20}
	s.must(sequence.Create(s.ctx, store, name, is))
	created := s.inspect(other, name)
	equal(s, "definition", created.Definition, is)
	equal(s, "next", created.Next, 6)
	equal(s, "last", created.Last, 4)
	equal(s, "left", created.Left, 498) // 6 to 1000 by 2
	s.must(sequence.Create(s.ctx, other, name, is))
	for _, wrong := range []sequence.Definition{
		{Mode: sequence.Ordered, Start: 5, Stride: is.Stride, Max: 1000},
		{Start: 6, Stride: is.Stride, Max: 1000, MinStep: 10, MaxStep: 20},
		{Start: 5, Stride: sequence.Every(2, 0), Max: 1000, MinStep: 10, MaxStep: 20},
		{Start: 5, Max: 1000, MinStep: 10, MaxStep: 20},
	} {
		err := sequence.Create(s.ctx, other, name, wrong)
		var differs *sequence.DefinitionError
		if !errors.As(err, &differs) {
			s.Fatalf("Create as %v: %v, want a DefinitionError", wrong, err)
		}
		s.wants("Create with another definition", err, stores.Refused)
		equal(s, "the existing definition", differs.Theirs, is)
		_, err = sequence.Open(s.ctx, other, name, sequence.WithDefinition(wrong))
		if !errors.As(err, &differs) {
			s.Fatalf("Open as %v: %v, want a DefinitionError", wrong, err)
		}
	}
	equal(s, "after refusals", s.inspect(store, name), created)
	q := s.open(other, name)
	s.next(q, 6)
	s.must(q.Close())
}

// Of several processes that create a sequence at once with two definitions, those with one of
// the two succeed, and the others are refused.
func testCreateAtOnce(s *suite) {
	const name, many = "orders", 6
	definitions := []sequence.Definition{{Start: 1}, {Start: 1000}}
	errs := make([]error, many)
	var creating sync.WaitGroup
	for i := range many {
		store := s.store()
		creating.Go(func() { errs[i] = sequence.Create(s.ctx, store, name, definitions[i%2]) })
	}
	creating.Wait()
	is := s.inspect(s.store(), name)
	for i, err := range errs {
		var differs *sequence.DefinitionError
		switch ours := definitions[i%2]; {
		case ours.Start == is.Definition.Start:
			s.must(err)
		case !errors.As(err, &differs) || differs.Theirs != is.Definition:
			s.Errorf("Create from %d: %v, and the sequence begins with %d", ours.Start, err, is.Definition.Start)
		}
	}
}

// Names of all kinds name different sequences, and others are refused.
func testNames(s *suite) {
	store := s.store()
	long := strings.Repeat("a.b-c_9.", 8)
	names := []string{long, long[:63] + "x", long[:63], "a", "0", "-", "_", "...", "a.", ".a", "a..b", "a-b", "a_b", "ab"}
	for i, name := range names {
		q := s.open(store, name, sequence.WithDefinition(sequence.Definition{Start: int64(i) * 10}))
		s.next(q, int64(i)*10)
		s.must(q.Close())
	}
	listed := func() (listed []string) {
		infos, err := sequence.List(s.ctx, store)
		s.must(err)
		for _, info := range infos {
			listed = append(listed, info.Name)
		}
		return listed
	}
	slices.Sort(names)
	if got := listed(); !slices.Equal(got, names) {
		s.Errorf("List: %q, want %q", got, names)
	}
	for i, name := range names {
		if i%2 == 0 {
			info := s.inspect(store, name)
			equal(s, name+" goes on at", info.Next, info.Definition.Start+1)
		}
	}
	for _, wrong := range []string{"", ".", "..", "Orders", "a b", "a/b", "ä", "a\x00", long + "x"} {
		s.wants("Create "+wrong, sequence.Create(s.ctx, store, wrong, sequence.Definition{}), stores.Refused)
	}
	if got := listed(); !slices.Equal(got, names) {
		s.Errorf("List after refusals: %q, want %q", got, names)
	}
}

// A sequence is changed while a process uses it, and never set back. The process polls, so
// that nothing else changes it.
func testSet(s *suite) {
	const name = "orders"
	store := s.store()
	q := s.open(s.store(), name, sequence.WithPolling(), sequence.WithDefinition(sequence.Definition{Start: 1, Max: 100_000, MinStep: 10, MaxStep: 10}))
	s.next(q, 1)
	before, after, err := sequence.Set(s.ctx, store, name, sequence.Change{Next: 1000, MinStep: 5, MaxStep: 50})
	s.must(err)
	equal(s, "next before Set", before.Next, 11)
	equal(s, "next after Set", after.Next, 1000)
	equal(s, "definition after Set", after.Definition, sequence.Definition{Start: 1, Max: 100_000, MinStep: 5, MaxStep: 50, Stride: before.Definition.Stride})
	equal(s, "as read", s.inspect(store, name), after)
	for number := range int64(9) {
		s.next(q, number+2) // the rest of the segment
	}
	s.next(q, 1000)
	equal(s, "largest step", q.Definition().MaxStep, 50)

	is := s.inspect(store, name)
	for _, lower := range []sequence.Change{{Next: 999}, {Next: 1}, {Max: is.Last - 1}, {Max: 1}} {
		_, _, err := sequence.Set(s.ctx, store, name, lower)
		s.wants("Set to a lower number", err, sequence.ErrLowered)
	}
	for _, wrong := range []sequence.Change{{Next: -1}, {Max: -1}, {MinStep: -1}, {MinStep: 51}, {MaxStep: math.MaxInt64}} {
		if _, _, err := sequence.Set(s.ctx, store, name, wrong); stores.KindOf(err) != stores.Refused {
			s.Errorf("Set %+v: %v, want a refusal", wrong, err)
		}
	}
	equal(s, "after refusals", s.inspect(store, name), is)
	s.must(q.Close())
	_, after, err = sequence.Set(s.ctx, store, name, sequence.Change{Max: math.MaxInt64})
	s.must(err)
	equal(s, "a maximum", after.Definition.HasMax(), false)

	// With a stride, the next number is one of the series.
	s.must(sequence.Create(s.ctx, store, "odd", sequence.Definition{Start: 1, Stride: sequence.Every(2, 0)}))
	_, after, err = sequence.Set(s.ctx, store, "odd", sequence.Change{Next: 100})
	s.must(err)
	equal(s, "next of the series", after.Next, 101)
}

// A sequence is deleted while a process uses it, and created anew with another definition.
// The process issues nothing of the new one. It polls, so that nothing else changes the
// sequence.
func testDelete(s *suite) {
	for _, mode := range []sequence.Mode{sequence.Segmented, sequence.Ordered} {
		store, name := s.store(), mode.String()
		q := s.open(s.store(), name, sequence.WithPolling(), sequence.WithDefinition(sequence.Definition{Mode: mode, Start: 1, MaxStep: 16}))
		s.next(q, 1)
		is := s.inspect(store, name)
		last, err := sequence.Delete(s.ctx, store, name)
		s.must(err)
		equal(s, "the last state", last.Next, is.Next)
		_, err = sequence.Inspect(s.ctx, store, name)
		s.wants("Inspect after Delete", err, sequence.ErrNotFound)
		_, err = sequence.Delete(s.ctx, store, name)
		s.wants("Delete again", err, sequence.ErrNotFound)
		infos, err := sequence.List(s.ctx, store)
		s.must(err)
		equal(s, "listed", len(infos), 0)

		s.must(sequence.Create(s.ctx, store, name, sequence.Definition{Start: 7000}))
		// What the process has reserved is its own.
		for number := int64(2); ; number++ {
			got, err := q.Next(s.ctx)
			if err != nil {
				s.wants("Next after Delete", err, sequence.ErrDeleted)
				break
			}
			if got != number || got >= is.Next {
				s.Fatalf("Next: %d after Delete, and %d was reserved before it", got, is.Next)
			}
		}
		if err := q.Close(); err != nil && !errors.Is(err, sequence.ErrNotGivenBack) {
			s.Errorf("Close: %v", err)
		}
		anew := s.open(store, name)
		s.next(anew, 7000)
		s.must(anew.Close())
		_, err = sequence.Delete(s.ctx, store, name)
		s.must(err)
	}
}

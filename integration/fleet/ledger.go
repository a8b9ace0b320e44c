package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Ledger has what callers got: IDs, or the numbers of one sequence. The zero Ledger is empty. It
// is safe for use by several goroutines at once. It keeps 48 bytes of each call and of each gap
// in its values.
type Ledger struct {
	mu      sync.Mutex
	entries []Entry
}

// Entry is N values in a row that a call has returned. Calls that have failed are not in a ledger: they may have taken values
// or not.
type Entry struct {
	First, N   int64
	Begin, End int64  // of the call, by one clock of all callers
	Source     string // who got it
}

func (e Entry) last() int64 { return e.First + e.N - 1 }

// Add notes the values that a call has returned.
func (l *Ledger) Add(source string, begin, end int64, values ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, v := range values {
		if last := len(l.entries) - 1; i > 0 && v == values[i-1]+1 {
			l.entries[last].N++
			continue
		}
		l.entries = append(l.entries, Entry{v, 1, begin, end, source})
	}
}

// Note notes entries as they are.
func (l *Ledger) Note(entries ...Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entries...)
}

// Count returns how many values there are, those that came twice included, and the highest one.
func (l *Ledger) Count() (n, highest int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		n += e.N
		highest = max(highest, e.last())
	}
	return n, highest
}

// From returns a ledger of the entries from a first value on.
func (l *Ledger) From(first int64) *Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Ledger{entries: slices.DeleteFunc(slices.Clone(l.entries), func(e Entry) bool { return e.First < first })}
}

// sort sorts the entries by their values. The caller holds the lock.
func (l *Ledger) sort() {
	slices.SortFunc(l.entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.last(), b.last()), cmp.Compare(a.Begin, b.Begin))
	})
}

// Twice returns how many values came again, at least, and an example. It is 0 only if there is
// none.
func (l *Ledger) Twice() (n int64, example string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sort()
	var before Entry
	for _, e := range l.entries {
		// An entry that has a value of any before has one of the entry just before.
		if common := before.last() - max(before.First, e.First) + 1; before.N > 0 && common > 0 {
			n += common
			example = cmp.Or(example, fmt.Sprintf("%d came to %s and to %s", max(before.First, e.First), before.Source, e.Source))
		}
		before = e
	}
	return n, example
}

// Disorder returns how many calls got a value below one that had been returned before they
// began, and an example; or, if bySource is set, below one that the same source had been
// returned. If there is none, the calls can have taken effect one after the other, each between
// its begin and its end: they are linearizable. Values may be missing.
func (l *Ledger) Disorder(bySource bool) (n int64, example string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sort()
	type latest struct {
		call Entry
		top  int64
	}
	// By source: of the calls with lower values that the sweep has passed, the one that began
	// last, and the highest value.
	passed := map[string]latest{}
	for _, e := range l.entries {
		source := ""
		if bySource {
			source = e.Source
		}
		p, some := passed[source]
		switch {
		case some && e.End < p.call.Begin:
			n++
			example = cmp.Or(example, fmt.Sprintf("%s got %d in a call that began after %d had been returned to %s", p.call.Source, p.call.First, e.First, e.Source))
		case some && e.First <= p.top:
			n++
			example = cmp.Or(example, fmt.Sprintf("%s got the %d values from %d on, and %d was highest before them", e.Source, e.N, e.First, p.top))
		}
		if !some || e.Begin > p.call.Begin {
			p.call = e
		}
		p.top = max(p.top, e.last())
		passed[source] = p
	}
	return n, example
}

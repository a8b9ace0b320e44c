package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// Report is what was seen of a [Fleet].
type Report struct {
	Issued     int // IDs, each repetition included
	Duplicates []Duplicate
	Disorder   []string // IDs that are smaller than one returned before their call

	// Errors counts errors by the sentinels that they wrap, such as
	// "call: ErrNotGranted ErrStore", and Examples has the last of each.
	Errors   map[string]int
	Examples map[string]string

	Slowest time.Duration // the longest call of NextContext
	Stats   lease.Stats   // the sums of all keepers' counts
}

// Duplicate is an ID that was issued twice.
type Duplicate struct {
	ID            snowflake.ID
	Time          time.Time
	Node          int64
	Sequence      int64
	First, Second string        // the runs that have issued it
	At            time.Duration // of the second, since the fleet's start
}

func (d Duplicate) String() string {
	return fmt.Sprintf("%v: node %d, %s, sequence %d: by %s, and after %v by %s", d.ID, d.Node,
		d.Time.UTC().Format("15:04:05.000"), d.Sequence, d.First, d.At.Round(time.Millisecond), d.Second)
}

// record notes an ID that a call has returned. high is the largest ID of the run when the
// call began.
func (r *run) record(id, high snowflake.ID) {
	f := r.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.Issued++
	r.issued++
	r.high = max(r.high, id)
	if id <= high && high != 0 {
		f.report.Disorder = append(f.report.Disorder, fmt.Sprintf("%v issued %v after %v", r, id, high))
	}
	if first, ok := f.seen[id]; ok {
		d, _ := f.layout.Decode(id) // the generator has composed it
		f.report.Duplicates = append(f.report.Duplicates, Duplicate{ID: id, Time: d.Time, Node: d.Node, Sequence: d.Sequence,
			First: first.String(), Second: r.String(), At: time.Since(f.began)})
	}
	f.seen[id] = r
}

// sentinels are the errors by which a caller can decide.
var sentinels = []struct {
	name string
	err  error
}{
	{"ErrNotGranted", generator.ErrNotGranted},
	{"ErrBehind", generator.ErrBehind},
	{"ErrExhausted", generator.ErrExhausted},
	{"ErrWentBack", stores.ErrWentBack},
	{"ErrLost", lease.ErrLost},
	{"ErrMoved", lease.ErrMoved},
	{"ErrHeld", lease.ErrHeld},
	{"ErrStore", lease.ErrStore},
	{"ErrConflict", stores.ErrConflict},
	{"Refused", stores.Refused},
	{"ErrForgets", stores.ErrForgets},
	{"ErrDamaged", stores.ErrDamaged},
	{"context", context.DeadlineExceeded},
}

// failed notes an error of what a run did.
func (r *run) failed(what string, err error) {
	kind := what + ":"
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			kind += " " + s.name
		}
	}
	f := r.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	r.last = err
	f.report.Errors[kind]++
	f.report.Examples[kind] = fmt.Sprintf("%v: %v", r, err)
}

func (r *Report) add(s lease.Stats) {
	r.Stats.Claims += s.Claims
	r.Stats.Extensions += s.Extensions
	r.Stats.Conflicts += s.Conflicts
	r.Stats.Releases += s.Releases
	r.Stats.Failures += s.Failures
	r.Stats.WentBack += s.WentBack
}

// String has a line for the counts, and one for each kind of error.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d IDs, %d duplicates, %d in disorder, the slowest call %v; claims %d, extensions %d, conflicts %d, failures %d, went back %d",
		r.Issued, len(r.Duplicates), len(r.Disorder), r.Slowest.Round(time.Millisecond),
		r.Stats.Claims, r.Stats.Extensions, r.Stats.Conflicts, r.Stats.Failures, r.Stats.WentBack)
	for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(&b, "\n  %6d × %s, such as %s", r.Errors[kind], kind, r.Examples[kind])
	}
	return b.String()
}

// Check fails the test unless the fleet worked as with a store that loses nothing: no
// duplicate, no store that went back, and all that CheckCalls says.
func (r *Report) Check(t testing.TB) {
	t.Helper()
	r.CheckCalls(t)
	if n := len(r.Duplicates); n > 0 {
		t.Errorf("%d were issued twice: %v", n, r.Duplicates[:min(n, 10)])
	}
	if r.Stats.WentBack > 0 {
		t.Errorf("the store went back %d times", r.Stats.WentBack)
	}
}

// CheckCalls fails the test unless the IDs of each run ascend, each call has ended in time,
// and each failed call had no grant or a clock that had gone back. It logs the report.
func (r *Report) CheckCalls(t testing.TB) {
	t.Helper()
	t.Log(r)
	if n := len(r.Disorder); n > 0 {
		t.Errorf("%d in disorder: %s", n, strings.Join(r.Disorder[:min(n, 10)], "; "))
	}
	if r.Slowest > callLimit {
		t.Errorf("a call with a limit of %v took %v", callTimeout, r.Slowest)
	}
	for kind := range r.Errors {
		known := strings.Contains(kind, "ErrNotGranted") || strings.Contains(kind, "ErrBehind") || strings.Contains(kind, "ErrExhausted")
		if strings.Contains(kind, "ErrLost") || strings.HasPrefix(kind, "call:") && !known || strings.HasPrefix(kind, "close:") {
			t.Errorf("unexpected error: %s", r.Examples[kind])
		}
	}
}

package sequence

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
)

// The sentinels that errors of this package wrap. The texts of the errors have the numbers.
// [stores.KindOf] tells whether a retry helps, except for ErrClosed and ErrNotGivenBack, which are of no kind.
var (
	// ErrClosed is returned by a [Sequence] that was closed, for good: a retry does not help.
	ErrClosed = errors.New("sequence is closed: open it again")
	// ErrNotFound: the store has no sequence of this name.
	ErrNotFound = stores.Permanent.New("no such sequence")
	// ErrDeleted: the sequence was deleted, and perhaps created anew since it was opened. If the error wraps
	// ErrNotFound too, create it anew, or open it in the store that continues it.
	ErrDeleted = stores.Permanent.New("sequence was deleted")
	// ErrByPeriod: the sequence is by period, and has no numbers of its own: see [OpenPeriods]. If the error
	// wraps ErrNotFound too, the name is that of a period: no period has such a name, or, from [Inspect], no
	// number of it was taken yet.
	ErrByPeriod = stores.Permanent.New("the sequence is by period")
	// ErrStore: an operation of the store failed; the cause is wrapped, and [stores.KindOf]
	// tells whether the store refused it. A write may have taken effect all the same; a
	// Sequence finds that out by itself.
	ErrStore = drive.ErrStore
	// ErrTimeout: a call without a deadline got no number within the timeout of [WithTimeout].
	ErrTimeout = stores.Transient.New("no number within the timeout")
	// ErrLowered: [Set] would lower the next number, or the maximum below a number that is
	// granted already.
	ErrLowered = stores.Permanent.New("a sequence is never set back")
	// ErrNotGivenBack: a sequence was closed, and the rest of its segment was not given
	// back: these numbers are never issued. There is no other effect.
	ErrNotGivenBack = errors.New("the rest of the segment was not given back")
)

// DefinitionError reports an existing sequence of the same name with another definition. A
// program decides by Theirs whether to use that one: [Open] and [OpenPeriods] do without [WithDefinition].
// [Set] changes the next number, the maximum and the steps; all else needs another name.
type DefinitionError struct {
	Name         string
	Ours, Theirs Definition // both with their defaults filled in
}

func (e *DefinitionError) Error() string {
	text := fmt.Sprintf("sequence %q exists as %s, and not as %s: take the definition that exists, or another name", e.Name, e.Theirs, e.Ours)
	switch ours, theirs := e.Ours.Period.String(), e.Theirs.Period.String(); {
	case ours == theirs:
		return fmt.Sprintf("%s; tickflake sequence set %s --next N begins higher, --max and --step change those", text, e.Name)
	case theirs == "":
		return text + "; what exists is not by period: Open opens it, and OpenPeriods does not"
	case ours == "":
		return text + "; what exists is by period: OpenPeriods opens it, and Open does not"
	}
	return text + "; its period never changes"
}

// Is reports whether target is [stores.Permanent].
func (e *DefinitionError) Is(target error) bool { return target == stores.Permanent }

// ExhaustedError reports that a sequence has fewer numbers left than a call asked for. A
// caller decides by Left whether to ask for fewer.
type ExhaustedError struct {
	Name  string
	Max   int64 // the last number that may be issued
	Asked int64 // how many numbers the call asked for
	Left  int64 // how many numbers are left for this process, including those that it has reserved
	End   bool  // Max is the last number that the sequence can reach: it cannot be raised
}

func exhausted(name string, r cell.Sequence, asked, left uint64) *ExhaustedError {
	return &ExhaustedError{Name: name, Max: r.Max, Asked: int64(asked), Left: int64(left), End: r.Max == r.End()}
}

func (e *ExhaustedError) Error() string {
	remedy := "raise the maximum with tickflake sequence set, or begin another sequence"
	if e.End {
		remedy = "that is the end of its range, so begin another sequence"
	}
	return fmt.Sprintf("sequence %q has %d numbers left up to its maximum %d, and the call asked for %d: %s", e.Name, e.Left, e.Max, e.Asked, remedy)
}

// Is reports whether target is [stores.Permanent].
func (e *ExhaustedError) Is(target error) bool { return target == stores.Permanent }

// byPeriodError is the error for the definition of a sequence by period.
func byPeriodError(name string, r cell.Sequence) error {
	return fmt.Errorf("sequence %q: %w, %s: take the numbers of a period, such as %s", name, ErrByPeriod, r.Period, periodName(name, cmp.Or(Period{text: r.Period}.example(), "NAME")))
}

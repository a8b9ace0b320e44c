package sequence

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/tickflake/tickflake/internal/cell"
)

// Mode says how the numbers of a sequence are given out. It never changes. In a [Definition], the empty Mode is
// [Segmented]; any other text is refused.
type Mode string

const (
	// Segmented: a process reserves numbers ahead of need and hands them out from memory,
	// at the speed of a local counter. Within a process numbers ascend; those of several
	// processes interleave.
	Segmented Mode = "segmented"
	// Ordered: every number is written to the store within the call that gets it. The
	// numbers are in the order of real time across all processes.
	Ordered Mode = "ordered"
)

// check returns an error unless m is a mode.
func (m Mode) check() error {
	if m != Segmented && m != Ordered {
		return fmt.Errorf("mode %.20q: want %s or %s", string(m), Segmented, Ordered)
	}
	return nil
}

// Stride says which numbers a sequence has: each by-th number, beginning offset numbers after
// the start. Sites that have no store in common use one stride with an offset
// of its own for each. The zero Stride is every number. Make another one with [Every].
type Stride struct{ by, offset int64 }

// Every returns the stride of each by-th number, from the start plus offset on. by is 1 or
// more, and offset from 0 up to, but not including, by; [Create] refuses others. Two sites
// that share the numbers from 1 on use Every(2, 0) and Every(2, 1).
func Every(by, offset int64) Stride { return Stride{by, offset} }

// By returns the difference between a number of the sequence and the next.
func (s Stride) By() int64 { return cmp.Or(s.by, 1) }

// Offset returns how far the first number is from the start.
func (s Stride) Offset() int64 { return s.offset }

// MarshalJSON returns an object with the numbers by and offset.
func (s Stride) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{"by": s.By(), "offset": s.offset})
}

// UnmarshalJSON parses the object that [Stride.MarshalJSON] returns. Both numbers are needed.
func (s *Stride) UnmarshalJSON(text []byte) error {
	var j map[string]*int64
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	by, offset := j["by"], j["offset"]
	if by == nil || offset == nil || *by == 0 {
		return errors.New("a stride needs by and offset: every site has the same by and an offset of its own")
	}
	*s = Every(*by, *offset)
	return nil
}

// The steps of a [Definition] that has none of its own.
const (
	DefaultMinStep = 16
	DefaultMaxStep = 1_000_000
)

// MaxStep is the largest step that a [Definition] can have.
const MaxStep = 1 << 40

// Definition says which numbers a sequence has, and how they are given out.
type Definition struct {
	// Mode, Start and Stride never change, or live segments would break the order.
	Mode     Mode   `json:"mode,omitzero"`
	Start    int64  `json:"start"`              // the first number is Start plus the stride's offset; 0 stands for 1
	FromZero bool   `json:"from_zero,omitzero"` // Start is 0 indeed
	Stride   Stride `json:"stride,omitzero"`

	// Max is the last number that may be issued, or 0 for the last that the sequence can
	// reach: it has at most 2⁶²-1 numbers, none above math.MaxInt64. A higher Max is refused.
	Max int64 `json:"max,omitzero"`
	// MinStep and MaxStep bound how many numbers a process reserves at a time in segmented
	// mode: from 1 to [MaxStep]. A MinStep of 0 is [DefaultMinStep], but at most MaxStep. A
	// MaxStep of 0 is [DefaultMaxStep], but at least MinStep. A crash loses at most two
	// segments of MaxStep numbers, and the largest batch. In ordered mode they have no effect.
	MinStep int64 `json:"min_step,omitzero"`
	MaxStep int64 `json:"max_step,omitzero"`

	// Period says when numbers begin anew: see [OpenPeriods]. It is zero for a sequence that is
	// not by period, and never changes.
	Period Period `json:"period,omitzero"`
}

// First returns the first number of the sequence.
func (d Definition) First() int64 { return d.start() + d.Stride.offset }

func (d Definition) start() int64 {
	if d.Start == 0 && !d.FromZero {
		return 1
	}
	return d.Start
}

// hasMax reports whether Max is below the last number that the sequence can reach.
func (d Definition) hasMax() bool { return d.Max != 0 && d.Max < d.end() }

// end is the last number that the sequence can reach. That of a definition that check refuses
// has no meaning.
func (d Definition) end() int64 {
	if d.Stride.By() < 1 || d.First() < 0 {
		return math.MaxInt64
	}
	return cell.Sequence{Start: d.start(), Stride: d.Stride.By(), Offset: d.Stride.offset}.End()
}

// String returns the definition for people, such as "segmented, from 1, 16 to 1000000 reserved
// at a time", or "ordered, from 1 to 999, stride 2 with offset 1".
func (d Definition) String() string {
	d = d.complete()
	text := fmt.Sprintf("%s, from %d", d.Mode, d.Start)
	if d.hasMax() {
		text += fmt.Sprintf(" to %d", d.Max)
	}
	if d.Stride.By() > 1 {
		text += fmt.Sprintf(", stride %d with offset %d", d.Stride.By(), d.Stride.offset)
	}
	if d.Mode == Segmented {
		text += fmt.Sprintf(", %d to %d reserved at a time", d.MinStep, d.MaxStep)
	}
	if d.Period != (Period{}) {
		text += fmt.Sprintf(", %s", d.Period)
	}
	return text
}

// complete returns the definition with its defaults filled in.
func (d Definition) complete() Definition {
	d.Mode, d.Start, d.Stride.by, d.Period.names = cmp.Or(d.Mode, Segmented), d.start(), d.Stride.By(), nil
	if d.Max == 0 {
		d.Max = d.end()
	}
	if d.MaxStep == 0 {
		d.MaxStep = max(DefaultMaxStep, d.MinStep)
	}
	if d.MinStep == 0 {
		d.MinStep = min(DefaultMinStep, d.MaxStep)
	}
	return d
}

// Validate returns nil if [Create] accepts the definition, and else the reason, with the numbers.
func (d Definition) Validate() error { return d.complete().check() }

// check returns the problem of a complete definition, with the numbers.
func (d Definition) check() error {
	switch {
	case d.Mode.check() != nil:
		return d.Mode.check()
	case d.Start < 0, d.Start > 0 && d.FromZero:
		return fmt.Errorf("start %d: want 1 or more, or FromZero alone", d.Start)
	case d.Stride.by < 1 || d.Stride.by > MaxStep:
		return fmt.Errorf("stride %d: want 1 to %d", d.Stride.by, int64(MaxStep))
	case d.Stride.offset < 0 || d.Stride.offset >= d.Stride.by:
		return fmt.Errorf("offset %d with stride %d: want 0 to %d", d.Stride.offset, d.Stride.by, d.Stride.by-1)
	case d.Max < 0 || d.Start > d.Max-d.Stride.offset:
		return fmt.Errorf("start %d plus offset %d is above the maximum %d: there is no number", d.Start, d.Stride.offset, d.Max)
	case d.Max > d.end():
		return fmt.Errorf("maximum %d is above %d, the last number that a sequence can reach with this start and stride: give that or less, or none", d.Max, d.end())
	case d.MinStep < 1 || d.MaxStep > MaxStep || d.MinStep > d.MaxStep:
		return fmt.Errorf("steps of %d to %d: want 1 to %d, and the first at most the second", d.MinStep, d.MaxStep, int64(MaxStep))
	case d.Period != (Period{}):
		return d.Period.check()
	}
	return nil
}

package stores

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// DamagedError reports a cell that cannot be read as it was written, or whose helper file
// cannot be used. It wraps [ErrDamaged]. A command that lists cells takes the
// key from it. A store never overwrites such a cell: it may be the only record of the
// issued IDs.
type DamagedError struct {
	Key     string
	Problem string // the damage, its place, and what to do
	Err     error  // the cause, such as that of a file; or nil
}

func (e *DamagedError) Error() string {
	key := e.Key
	if len(key) > MaxKey {
		key = key[:MaxKey] + "…"
	}
	text := fmt.Sprintf("cell %q is damaged: %s", key, e.Problem)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns [ErrDamaged] and the cause.
func (e *DamagedError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrDamaged}
	}
	return []error{ErrDamaged, e.Err}
}

// JoinDamaged returns one error for the cells that a List could not read, or nil if errs
// is empty. It wraps each of them, and names the first ones.
func JoinDamaged(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return damaged(errs)
}

type damaged []error

func (e damaged) Error() string {
	const shown = 3
	var text strings.Builder
	for i, err := range e[:min(shown, len(e))] {
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(err.Error())
	}
	if len(e) > shown {
		fmt.Fprintf(&text, "; and %d more", len(e)-shown)
	}
	return text.String()
}

func (e damaged) Unwrap() []error { return e }

// FormatCell returns the text of a cell for an engine that keeps one text by key: the
// version in decimal, a space, and the value.
func FormatCell(version uint64, value []byte) []byte {
	return append(append(strconv.AppendUint(nil, version, 10), ' '), value...)
}

// ParseCell parses a text that [FormatCell] made. The error of any other text is a
// [*DamagedError]. The cell's Value is a part of text.
func ParseCell(key string, text []byte) (Cell, error) {
	version, value, ok := bytes.Cut(text, []byte{' '})
	n, err := strconv.ParseUint(string(version), 10, 63)
	if !ok || err != nil || n == 0 || version[0] == '0' || CheckValue(value) != nil {
		return Cell{}, &DamagedError{Key: key, Problem: "another program has written it; find out which one, and use another namespace"}
	}
	return Cell{Key: key, Version: n, Value: value}, nil
}

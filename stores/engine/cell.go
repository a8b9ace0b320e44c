package engine

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

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
// [*stores.DamagedError]. The cell's Value is a part of text.
func ParseCell(key string, text []byte) (stores.Cell, error) {
	version, value, ok := bytes.Cut(text, []byte{' '})
	n, err := strconv.ParseUint(string(version), 10, 63)
	if !ok || err != nil || n == 0 || version[0] == '0' || stores.CheckValue(value) != nil {
		return stores.Cell{}, &stores.DamagedError{Key: key, Problem: "another program has written it; find out which one, and use another namespace"}
	}
	return stores.Cell{Key: key, Version: n, Value: value}, nil
}

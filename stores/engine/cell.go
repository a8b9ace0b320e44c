package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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
	var texts []string
	for _, err := range e[:min(shown, len(e))] {
		texts = append(texts, err.Error())
	}
	if len(e) > shown {
		texts = append(texts, fmt.Sprintf("and %d more", len(e)-shown))
	}
	return strings.Join(texts, "; ")
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

// versionStep is the greatest difference between a version of a cell and the next one.
// Random steps of up to 2³² leave room for about 2³² writes to each cell.
const versionStep = 1 << 32

// nextVersion checks the arguments of a Swap, and returns the version of the new value: a
// random step from 1 to 2³² above version, and below 2⁶³.
//
// The error is that of [stores.CheckKey] or [stores.CheckValue], or wraps [stores.ErrConflict] if the version is
// too great for any cell.
//
// A store that was restored from a backup gets new writes in place of the lost ones. If
// versions only counted up, a new write and a lost one would have the same version, and a
// Swap by a process that saw the lost write would change a cell that it has never seen.
func nextVersion(key string, version uint64, value []byte) (uint64, error) {
	if err := stores.CheckKey(key); err != nil {
		return 0, err
	}
	if err := stores.CheckValue(value); err != nil {
		return 0, err
	}
	if version > 1<<63-1-versionStep {
		return 0, fmt.Errorf("%w: no cell has the version %d", stores.ErrConflict, version)
	}
	return version + 1 + rand.Uint64N(versionStep), nil
}

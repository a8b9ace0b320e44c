package engine

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// Failing returns the error of an operation, as [Failed] does, with what an engine adds.
type Failing func(ctx context.Context, op, key string, err error) error

// List is the List of a Store. list returns the cells, and an error for each cell that cannot be
// read, which the error of List wraps: see [JoinDamaged].
func List(ctx context.Context, failed Failing, list func() (cells []stores.Cell, damaged []error, err error)) ([]stores.Cell, error) {
	cells, damaged, err := list()
	if err != nil {
		return nil, failed(ctx, "list", "", err)
	}
	if err := JoinDamaged(damaged); err != nil {
		return cells, failed(ctx, "list", "", err)
	}
	return cells, nil
}

// Read is the Read of a Store: it checks the key, and calls read.
func Read(ctx context.Context, failed Failing, key string, read func(ctx context.Context, key string) (stores.Cell, error)) (cell stores.Cell, err error) {
	if err = stores.CheckKey(key); err == nil {
		cell, err = read(ctx, key)
	}
	if err != nil {
		return stores.Cell{}, failed(ctx, "read", key, err)
	}
	return cell, nil
}

// Swap is the Swap of a Store: it checks its arguments, draws the next version by [NextVersion], and calls swap with a copy of the
// value, which replaces the cell if that has the version.
func Swap(ctx context.Context, failed Failing, key string, version uint64, value []byte, swap func(ctx context.Context, version uint64, next stores.Cell) error) (uint64, error) {
	next, err := NextVersion(key, version, value)
	if err == nil {
		err = swap(ctx, version, stores.Cell{Key: key, Version: next, Value: bytes.Clone(value)})
	}
	if err != nil {
		return 0, failed(ctx, "swap", key, err)
	}
	return next, nil
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
// [*stores.DamagedError]. The cell's Value is a part of text.
func ParseCell(key string, text []byte) (stores.Cell, error) {
	version, value, ok := bytes.Cut(text, []byte{' '})
	n, err := strconv.ParseUint(string(version), 10, 63)
	if !ok || err != nil || n == 0 || version[0] == '0' || stores.CheckValue(value) != nil {
		return stores.Cell{}, &stores.DamagedError{Key: key, Problem: "another program has written it; find out which one, and use another namespace"}
	}
	return stores.Cell{Key: key, Version: n, Value: value}, nil
}

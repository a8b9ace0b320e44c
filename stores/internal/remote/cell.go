package remote

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tickflake/tickflake/lease"
)

// maxNode is the number of node numbers that a cell can have. Others are refused
// because their keys would sort, or be read back, as something else.
const maxNode = 1 << 22

// CheckNode refuses node numbers that no cell can have.
func CheckNode(node int64) error {
	if node < 0 || node >= maxNode {
		return fmt.Errorf("node number %d is not in [0, %d)", node, maxNode)
	}
	return nil
}

// Key returns the name of a cell, with leading zeros so that names sort as numbers do.
func Key(node int64) string { return fmt.Sprintf("%07d", node) }

// NodeOf is the inverse of Key. Names that are no cell's may be in the same place,
// put there by hand; they are passed over.
func NodeOf(name string) (node int64, ok bool) {
	for _, r := range name {
		if r < '0' || r > '9' {
			return 0, false
		}
		node = node*10 + int64(r-'0')
	}
	return node, len(name) == 7 && node < maxNode
}

// CheckCell returns a [*ValueError] for a cell that no Swap may write. Not every
// server keeps U+0000 in a text; zero says that it does.
func CheckCell(cell lease.Cell, zero bool) error {
	text := "UTF-8 text"
	if !zero {
		text += " without U+0000"
	}
	switch {
	case cell.Node < 0 || cell.Node >= maxNode:
		return &ValueError{Problem: "node number is not from 0 to 2²²-1"}
	case len(cell.Value) > lease.MaxValue:
		return &ValueError{Problem: fmt.Sprintf("value has %d bytes, more than %d", len(cell.Value), lease.MaxValue)}
	case !utf8.Valid(cell.Value) || !zero && bytes.IndexByte(cell.Value, 0) >= 0:
		return &ValueError{Problem: "value is not " + text}
	}
	return nil
}

// ValueError reports a cell that a Swap was to write and no store takes.
type ValueError struct {
	Problem string // what is wrong with it, with the limit
}

func (e *ValueError) Error() string { return e.Problem }

// Error reports an operation on the cells of a namespace that failed.
type Error struct {
	Package   string // "etcd" or so
	Op        string // "list", "read" or "swap"
	Namespace string
	Node      int64 // the node number of the cell; -1 if Op is "list"
	Err       error // the cause, with no password in it
}

func (e *Error) Error() string {
	what := "cells"
	if e.Op != "list" {
		what = fmt.Sprintf("cell %d", e.Node)
	}
	return fmt.Sprintf("%s: %s %s of namespace %q: %v", e.Package, e.Op, what, e.Namespace, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Because returns err, and makes it wrap ended, the error of the operation's context,
// or nil: a driver may say in its own words that the context has ended. A conflict
// stays one, as it says for certain that nothing was changed.
func Because(ended, err error) error {
	if ended == nil || errors.Is(err, ended) || errors.Is(err, lease.ErrConflict) {
		return err
	}
	return fmt.Errorf("%w: %w", ended, err)
}

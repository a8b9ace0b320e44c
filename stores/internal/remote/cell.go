package remote

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
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

// CheckCell returns an error for a cell that no Swap may write. Not every server keeps
// U+0000 in a text; zero says that it does.
func CheckCell(cell lease.Cell, zero bool) error {
	text := "UTF-8 text"
	if !zero {
		text += " without U+0000"
	}
	switch {
	case cell.Node < 0 || cell.Node >= maxNode:
		return errors.New("node number is not from 0 to 2²²-1")
	case len(cell.Value) > lease.MaxValue:
		return fmt.Errorf("value has %d bytes, more than %d", len(cell.Value), lease.MaxValue)
	case !utf8.Valid(cell.Value) || !zero && bytes.IndexByte(cell.Value, 0) >= 0:
		return errors.New("value is not " + text)
	}
	return nil
}

// Failed returns the error of an operation on the cells of a namespace: list, read or
// swap. It wraps err. A list has no node number. The store is its name, and where its
// servers are, as [At] returns it.
func Failed(store, op, namespace string, node int64, err error) error {
	what := "cells"
	if op != "list" {
		what = fmt.Sprintf("cell %d", node)
	}
	return fmt.Errorf("%s: %s %s of namespace %q: %w", store, op, what, namespace, err)
}

// At returns the name of a store, and where its servers are if that is known. They are
// HOST:PORT each, or URLs, of which only that is shown.
func At(store string, servers ...string) string {
	var hosts []string
	for _, server := range servers {
		if _, rest, ok := strings.Cut(server, "://"); ok {
			server = rest
		}
		if server = server[strings.LastIndex(server, "@")+1:]; server != "" {
			hosts = append(hosts, server)
		}
	}
	if len(hosts) == 0 {
		return store
	}
	return store + " at " + strings.Join(hosts, ",")
}

// Because returns err, and makes it wrap ended, the error of the operation's context,
// or nil: a driver may say in its own words that the context has ended. A conflict
// stays one, as it says for certain that nothing was changed.
func Because(ended, err error) error {
	if ended == nil || errors.Is(err, ended) || errors.Is(err, lease.ErrConflict) {
		return err
	}
	return fmt.Errorf("%w: %w", ended, err)
}

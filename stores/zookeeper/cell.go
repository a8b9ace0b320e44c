package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/lease"
)

// Error reports an operation of a [Store] that failed. It wraps lease.ErrConflict
// if a Swap found another version and changed nothing; after any other error of
// a Swap it is not known whether the value was, or will be, written.
type Error struct {
	Op        string // "list", "read" or "swap"
	Namespace string
	Node      int64 // the node number of the cell; -1 if Op is "list"
	Err       error // the cause, with no password in it
}

func (e *Error) Error() string {
	if e.Op == "list" {
		return fmt.Sprintf("zookeeper: list cells of namespace %q: %v", e.Namespace, e.Err)
	}
	return fmt.Sprintf("zookeeper: %s cell %d of namespace %q: %v", e.Op, e.Node, e.Namespace, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func (s *Store) failed(ctx context.Context, op string, node int64, err error) error {
	// A driver may say in its own words that the context has ended.
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) && !errors.Is(err, lease.ErrConflict) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return &Error{Op: op, Namespace: s.namespace, Node: node, Err: err}
}

// maxNode is the number of node numbers that a cell can have. Others are refused
// because their keys would sort, or be read back, as something else.
const maxNode = 1 << 22

func checkNode(node int64) error {
	if node < 0 || node >= maxNode {
		return fmt.Errorf("node number %d is not in [0, %d)", node, maxNode)
	}
	return nil
}

// key returns the name of a cell, with leading zeros so that names sort as numbers do.
func key(node int64) string { return fmt.Sprintf("%07d", node) }

// nodeOf is the inverse of key. Names that are no cell's may be in the same place,
// put there by hand; they are passed over.
func nodeOf(name string) (int64, bool) {
	var node int64
	for _, r := range name {
		if r < '0' || r > '9' {
			return 0, false
		}
		node = node*10 + int64(r-'0')
	}
	return node, len(name) == 7 && node < maxNode
}

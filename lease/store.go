package lease

import (
	"context"
	"errors"
)

// Store keeps the cells of one fleet: for each node number that was ever claimed,
// a small value with a version. The protocol of this package stands on two
// properties, and no others:
//
//   - Swap and Read are linearizable: they take effect one after the other, at one
//     instant between call and return. A Read that begins after a Swap returned
//     sees that Swap or a later one, whichever process made it.
//   - Swap is durable: once it has returned nil, no crash of any machine undoes it.
//     Nor does one undo what List or Read has shown.
//
// A Store that loses an acknowledged Swap, as a database with asynchronous
// replication may in a failover, can make two processes issue the same IDs. Each
// Store's doc says what to configure.
//
// All methods are called with a context that ends within the keeper's timeout, and
// must return soon after it has ended. They must be safe for use by several
// goroutines at once. An error's text must hold no password.
//
// To try out a Store of your own, put it through
// [github.com/tickflake/tickflake/lease/leasetest.TestStore].
type Store interface {
	// List returns all cells, in any order. It may be out of date: what it shows
	// only guides which cell to try. If the store itself finds that a cell is
	// damaged, the error wraps [ErrDamaged], and comes with the cells that are not.
	List(ctx context.Context) ([]Cell, error)

	// Read returns the cell of a node number, or one with Version 0 and no Value if
	// there is none.
	Read(ctx context.Context, node int64) (Cell, error)

	// Swap replaces the value of the cell old.Node with value, provided that its
	// version still is old.Version; 0 says that there is no such cell yet. It
	// returns the cell as it is now. old.Value is not looked at.
	//
	// If the version is another, it changes nothing and returns an error that
	// wraps [ErrConflict]. After any other error it is unknown whether the value was
	// written, and even whether it will be later, by a message still on its way;
	// the provision holds for such a late write, too.
	Swap(ctx context.Context, old Cell, value []byte) (Cell, error)
}

// Cell is what a [Store] keeps for one node number.
type Cell struct {
	Node    int64  // from 0 to 2²²-1
	Version uint64 // 0: there is no such cell. No two values of a cell ever have the same version.
	Value   []byte // at most MaxValue bytes of UTF-8 text, made by this package
}

// MaxValue is the length in bytes of the longest value that is kept in a cell.
const MaxValue = 1024

// ErrConflict is wrapped by the error of a Swap that found another version than it
// was given, and changed nothing.
var ErrConflict = errors.New("cell was changed by another process")

// ErrDamaged is wrapped by the error for a cell that cannot be read as it was
// written.
var ErrDamaged = errors.New("cell is damaged")

// Locker is a [Store] that knows whether the process that holds a cell is alive,
// as one on the same host can. A process locks a cell before it claims it, and
// keeps the lock for as long as it holds the cell; the end of the process, however
// it comes, unlocks it. A cell that is not locked is free, and one that is locked
// is not.
//
// Locks only save waiting. Uniqueness rests on Swap alone.
type Locker interface {
	Store

	// TryLock locks the cell of a node number without waiting for whoever holds
	// it. The error of one that is locked already, by this process or another, wraps
	// [ErrLocked]. unlock may be called more than once.
	TryLock(ctx context.Context, node int64) (unlock func(), err error)
}

// ErrLocked is wrapped by the error of a TryLock for a cell that is locked.
var ErrLocked = errors.New("cell is locked by a living process")

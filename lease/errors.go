package lease

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tickflake/tickflake/snowflake"
)

// ErrClosed is returned for a [Keeper] that was closed, for good.
var ErrClosed = errors.New("lease is closed: claim a new one")

// ErrBound is returned by [generator.New] for a [Keeper] that another generator
// issues IDs under.
var ErrBound = errors.New("lease is bound to another generator: claim one for each")

// OptionError reports an option that [Claim] cannot work with.
type OptionError struct {
	Option string // the option's name, such as "WithWindow"
	Err    error  // what is wrong with its value, with the numbers
}

func (e *OptionError) Error() string { return e.Option + ": " + e.Err.Error() }

// Unwrap returns what is wrong with the value.
func (e *OptionError) Unwrap() error { return e.Err }

// StoreError reports an operation of the store that failed. For a swap it is not
// known whether it took effect; the keeper finds out by itself.
type StoreError struct {
	Op    string    // list, read, swap or lock
	Node  int64     // of the cell, or -1 for a list
	Since time.Time // when operations began to fail, or zero for the first
	Err   error     // as the store returned it
}

func (e *StoreError) Error() string {
	since, cell := "", ""
	if !e.Since.IsZero() {
		since = fmt.Sprintf(" since %s", e.Since.UTC().Format(time.RFC3339))
	}
	if e.Node >= 0 {
		cell = fmt.Sprintf(" of cell %d", e.Node)
	}
	return fmt.Sprintf("store does not answer%s: %s%s: %v", since, e.Op, cell, e.Err)
}

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// NoFreeNodeError reports that every node number is held.
type NoFreeNodeError struct {
	Held    int       // node numbers that are held
	Nodes   int64     // node numbers that the layout has
	Soonest time.Time // the earliest end of a grant among them, or zero if none is known; it is free a window later
	Latest  time.Time // the latest
	Err     error     // the context's error, with its cause, if it ended the wait for one, or nil
}

func (e *NoFreeNodeError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no free node number: %d of %d are held", e.Held, e.Nodes)
	if !e.Soonest.IsZero() {
		fmt.Fprintf(&b, ", until %s (the first) to %s (the last) and a window longer, unless they are extended", e.Soonest.UTC().Format(time.RFC3339), e.Latest.UTC().Format(time.RFC3339))
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	b.WriteString(": wait with a context that has a later deadline, end processes, or stop the whole fleet and move it to a layout with more node bits")
	return b.String()
}

// Unwrap returns the context's error.
func (e *NoFreeNodeError) Unwrap() error { return e.Err }

// HeldError reports that the node number that was asked for is held by another
// process, which lives, or that it took it from this one.
type HeldError struct {
	Node  int64
	Owner string // who holds it, if that is known
	Err   error  // wraps [ErrLocked] or [ErrConflict]
}

func (e *HeldError) Error() string {
	owner := e.Owner
	if owner == "" {
		owner = "another process"
	}
	return fmt.Sprintf("node number %d is held by %s: end that, or give each process a number of its own", e.Node, owner)
}

// Unwrap returns Err.
func (e *HeldError) Unwrap() error { return e.Err }

// RecordError reports a cell whose content is not a record of this package. It is
// never overwritten: the limit that it held is not known.
type RecordError struct {
	Node    int64
	Problem string
	Err     error // the cause, or nil
}

func (e *RecordError) Error() string {
	text := fmt.Sprintf("cell of node number %d cannot be read: %s", e.Node, e.Problem)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + ": restore it, or, if no process can still issue IDs with that number, and the clock is past all its IDs, delete it"
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// Is reports whether target is [ErrDamaged].
func (e *RecordError) Is(target error) bool { return target == ErrDamaged }

// LayoutMismatchError reports a store whose cells are for IDs of another layout.
// The two would share node numbers and not their meaning.
type LayoutMismatchError struct {
	Node         int64 // of the cell that was looked at
	Ours, Theirs snowflake.Layout
}

func (e *LayoutMismatchError) Error() string {
	return fmt.Sprintf("store holds cells for the layout %s (node number %d), and not for %s: use that layout, or, for IDs that meet none of those, another namespace", e.Theirs, e.Node, e.Ours)
}

// SkewError reports that this process's clock is far from the fleet's.
type SkewError struct {
	Skew  time.Duration // ours minus theirs: above zero if ours is ahead
	Limit time.Duration
	Nodes int // by how many of the fleet that was judged
}

func (e *SkewError) Error() string {
	direction, skew := "ahead of", e.Skew
	if skew < 0 {
		direction, skew = "behind", -skew
	}
	return fmt.Sprintf("clock is about %s %s the fleet, by the grants of %d nodes (limit %s): set it right; IDs stay unique, but may not sort with the others'",
		skew.Round(time.Second), direction, e.Nodes, e.Limit)
}

// EndOfTimeError reports that no node number has ticks left before the end of the
// layout's time field.
type EndOfTimeError struct{ End time.Time }

func (e *EndOfTimeError) Error() string {
	return fmt.Sprintf("no node number has time left before %s, the end of the layout: set the clock right, or move to another layout, whose IDs may repeat the numbers of these, so to one above them or for a new table", e.End.Format(time.RFC3339))
}

// ReleaseError reports that a lease could not be given back. Its node number stays
// taken until the store's other users see that it is not extended any longer.
// Nothing else is amiss.
type ReleaseError struct {
	Node int64
	Err  error
}

func (e *ReleaseError) Error() string {
	return fmt.Sprintf("node number %d was not given back, and stays taken for a while: %v", e.Node, e.Err)
}

// Unwrap returns the cause.
func (e *ReleaseError) Unwrap() error { return e.Err }

// URLError reports a URL that names no store, to a package under stores. Where the
// password begins and ends in a URL that is wrong is anybody's guess. So, of the URL,
// neither the text nor any cause shows more than the scheme, the names of options that
// the store or its driver knows, and, if that is what is wrong, the value of the options
// namespace and table, and of those that name a file to NATS, etcd and ZooKeeper (cacert,
// cert, key, creds, nkey). What a driver says of a URL is withheld, but for such names.
type URLError struct {
	Scheme  string // such as "postgres"; empty if it is none that the store knows
	Problem string // what is wrong, and what is wanted
	Err     error  // the cause, such as a [*NamespaceError], or a certificate file that cannot be read; or nil
}

func (e *URLError) Error() string {
	text := "store URL: " + e.Problem
	if e.Scheme != "" {
		text = e.Scheme + " " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause, or nil.
func (e *URLError) Unwrap() error { return e.Err }

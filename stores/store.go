package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Store keeps cells by key. The protocol of package lease stands on two
// properties, and no others:
//
//   - Swap and Read are linearizable: they take effect one after the other, at one
//     instant between call and return. A Read that begins after a Swap returned
//     sees that Swap or a later one, whichever process made it.
//   - Swap is durable: once it has returned nil, no crash of any machine undoes it.
//     Nor does a crash undo what a Read has shown.
//
// A Store that loses an acknowledged Swap, as a database with asynchronous
// replication may in a failover, can make two processes issue the same IDs. Each
// engine's doc says what to configure, and [CheckDurability] asks the engine.
//
// A method with a context returns at most 0.1 seconds after the context has ended, and has no other bound: give it a
// deadline. All methods are safe for use by several goroutines at once. An engine gives each error a [Kind], by
// [Kind.New] or by Failed of package engine: without one it is Unknown, and is retried, even fs.ErrPermission. An
// error's text holds no password. If [CheckKey] refuses a key, or [CheckValue] a value, the method sends nothing, and
// returns an error.
type Store interface {
	// List returns the cells whose keys are in [from, to), in the order of their keys
	// as bytes, at most limit of them: a caller who gets limit cells goes on from the
	// last key plus "\x00". A limit below 1 gives none. The list may be out of date, or show a
	// write that a crash undoes: it only guides which cell to try. from and to are compared with
	// keys and need not be keys themselves.
	//
	// If the store finds damaged cells, List returns the others, up to limit, with an error that
	// wraps a [*DamagedError] of each damaged one. So a list shorter than limit is the last.
	List(ctx context.Context, from, to string, limit int) ([]Cell, error)

	// Read returns the cell of a key, or one with Version 0 and no Value if there is
	// none.
	Read(ctx context.Context, key string) (Cell, error)

	// Swap replaces the value of a cell if its version still is version; 0 stands for
	// a cell that does not exist yet. It returns the cell's new version.
	//
	// If the version is another, it changes nothing and returns an error that
	// wraps [ErrConflict]. If the store finds that the cell is damaged, it changes nothing
	// either, and the error wraps [ErrDamaged], as that of a Read does. After any other error
	// it is unknown whether the value was written, and even whether it will be written later, by a message still in flight;
	// such a late write is conditional on version, too.
	//
	// A version never recurs, not even after the store was restored from a backup:
	// it grows by a random step of up to 2³².
	Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error)

	// Close ends what [Open] opened: connections and goroutines. It leaves the cells as
	// they are, and a client that the caller brought open. It may be called more than
	// once. Later operations return soon, and those that need what was closed fail. Close
	// has no context: if the server hangs, it returns after at most a second.
	Close() error

	// Traits returns what the store is and can do besides. A type that embeds a Store has its traits. One that
	// passes calls on to a Store in a field returns those of that Store, or the lease loses what they promise.
	Traits() Traits
}

// Traits are what a [Store] is and can do besides keeping cells. Each field may be left out: those of an engine of
// your own can be the zero value. Its functions are safe for use by several goroutines at once.
type Traits struct {
	// TryLock is not nil if the store knows whether the process that holds a cell is alive, as a store on the
	// same host can. A process locks a cell before it claims it, and keeps the lock for as long as it holds the
	// cell; any end of the process, also a crash, unlocks it. A cell that is not locked is free, and a locked
	// cell is not. Locks only save waiting: uniqueness rests on Swap alone.
	//
	// TryLock does not wait for the holder. If the cell is locked already, by this process or another, the
	// error wraps [ErrLocked]. unlock may be called more than once.
	TryLock func(ctx context.Context, key string) (unlock func(), err error)

	// Scattered says that there are easily several stores where one was meant, such as a directory in each pod.
	// A new store then begins at a random node number, which makes duplicates rarer, not impossible.
	Scattered bool

	// Private returns why each host or container is likely to have a store of its own here, or "". A lease logs it.
	Private func(ctx context.Context) string

	// Window, if above 0, is the default length of a lease's grants: for a store whose writes are dear.
	Window time.Duration

	// Bucket, if above 0, is the default time that shares one cell where node numbers are given to the past:
	// for a store whose cells are dear to keep.
	Bucket time.Duration

	// Durability asks the server for its settings; see [CheckDurability]. Its error says that the server does
	// not answer, or refuses.
	Durability func(ctx context.Context) (Durability, error)

	// Probe finds out by many writes whether the server keeps the promises of a Store, which some servers of
	// its protocol break under load. It is called before the first process of a fleet writes and before a
	// sequence is created, and does nothing then if a server has passed before. "tickflake store check" probes
	// again. The error is [Permanent] if the server breaks a promise; a store that was opened by a URL is
	// refused from then on.
	Probe func(ctx context.Context, again bool) error
}

// Cell is the value of one key in a [Store].
type Cell struct {
	Key     string
	Version uint64 // 0: there is no such cell. No two values of a cell ever have the same version.
	Value   []byte // permitted by CheckValue
}

// MaxValue is the length in bytes of the longest value of a cell, and MaxKey that of
// the longest key.
const (
	MaxValue = 1024
	MaxKey   = 100
)

// ErrConflict is wrapped by the error of a Swap that found another version than it
// was given, and changed nothing.
var ErrConflict = Transient.New("cell was changed by another process")

// ErrDamaged is wrapped by the error for a cell that cannot be read as it was
// written.
var ErrDamaged = Loss.New("cell is damaged")

// ErrLocked is wrapped by the error of a TryLock for a cell that is locked.
var ErrLocked = Transient.New("cell is locked by a living process")

// CheckKey returns an error unless key can name a cell: one or more parts with slashes
// between them, each of lower-case ASCII letters, digits, dots, hyphens and underscores,
// and none of them "." or "..", of [MaxKey] bytes in all. Every engine takes such keys,
// also one that ignores case.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("key %.20q…: %d bytes, want at most %d", key, len(key), MaxKey)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("key %q: part %q between slashes, want a name", key, part)
		}
		for _, r := range part {
			if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_' {
				return fmt.Errorf("key %q: it holds %q, want lower-case ASCII letters, digits, dots, hyphens, underscores and slashes", key, r)
			}
		}
	}
	return nil
}

// CheckValue returns an error unless a cell can have the value: at most [MaxValue] bytes
// of UTF-8 text without U+0000, which the text types of some databases refuse.
func CheckValue(value []byte) error {
	switch {
	case len(value) > MaxValue:
		return fmt.Errorf("value of %d bytes, want at most %d", len(value), MaxValue)
	case !utf8.Valid(value) || bytes.IndexByte(value, 0) >= 0:
		return errors.New("value is not UTF-8 text without U+0000")
	}
	return nil
}

// Durability describes the settings of an engine that can lose acknowledged writes. Each
// sentence names a setting, its value, the effect, and the value to set.
type Durability struct {
	// Forgets is about settings with which acknowledged writes are lost when the process
	// of the server is killed and started again, on a machine that goes on running, or
	// even while the server runs. [Open] refuses such a store.
	Forgets []string

	// Risks has the settings with which they are lost in rarer events: when the machine
	// of the server loses power or its kernel crashes, when the disk is too slow, or in a
	// failover.
	Risks []string

	// Unknown has the settings that the server does not report, as with many rented
	// servers.
	Unknown []string
}

// CheckDurability asks the engine of a store for its settings. Callers with their own clients, instead of a URL
// for [Open], call it once before they use the store.
//
// An engine that reports no settings gets a Read, to check that it answers. A result without sentences is no
// proof: a client cannot see whether a disk keeps its writes, or which server takes over in a failover. Give
// ctx a deadline: it returns at most 0.1 seconds after ctx ends. The error says that the server does not
// answer, or refuses.
func CheckDurability(ctx context.Context, store Store) (Durability, error) {
	if ask := store.Traits().Durability; ask != nil {
		return ask(ctx)
	}
	_, err := store.Read(ctx, "probe")
	return Durability{}, err
}

// DefaultNamespace is the namespace of a store that was given no other.
const DefaultNamespace = "tickflake"

// MaxNamespace is the length in bytes of the longest namespace.
const MaxNamespace = 48

// CheckNamespace returns an error unless name can name a namespace: the cells of one
// fleet in a server that several fleets share. A name has 1 to [MaxNamespace] ASCII
// letters, digits, hyphens and underscores; every engine takes them as they are.
func CheckNamespace(name string) error {
	problem := ""
	if len(name) == 0 || len(name) > MaxNamespace {
		problem = fmt.Sprintf("its length is %d", len(name))
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && problem == "" {
			problem = fmt.Sprintf("it holds %q", r)
		}
	}
	if problem == "" {
		return nil
	}
	if len(name) > MaxNamespace {
		name = name[:MaxNamespace] + "…"
	}
	return fmt.Errorf("namespace %q: %s; want 1 to %d ASCII letters, digits, hyphens and underscores", name, problem, MaxNamespace)
}

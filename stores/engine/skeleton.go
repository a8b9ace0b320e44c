package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// Texts is the part of an engine that keeps one text by key, and can write it on the condition that its
// revision is still one that was read. R is the revision of the driver; its zero value means that there
// is no text. [Skeleton] makes a [stores.Store] of it. All methods may be called by several goroutines
// at once. One that does not return soon after ctx has ended is left alone, and its results are dropped; so it
// does not use what the caller of the Store may change.
type Texts[R comparable] interface {
	// Get returns the text of a key. With latest, it is linearizable and no crash undoes it; without, it may be from a
	// server that lags behind. The error of a text that an engine knows to be damaged is a [*stores.DamagedError].
	Get(ctx context.Context, key string, latest bool) (Text[R], error)

	// Put writes a text if the key still has the revision, and makes it if that is zero. If the revision
	// is another, it changes nothing and its error wraps [stores.ErrConflict]. It must not
	// do so because of its own write, as a driver could that sends again: a Skeleton without Version notices that, but
	// only until another process writes. After any other error the outcome is unknown.
	Put(ctx context.Context, key string, revision R, text []byte) error

	// Scan gives texts of keys in [from, to) to found: about most of them, or one page of the server, and of
	// the lowest keys as bytes. more says that there are others above the highest that it has given, which is not
	// below from. It may give a key twice, the keys of a page in any order, and keys that are not asked for,
	// which are left out. from and to are not empty, and have the bytes of keys alone, or are {.
	Scan(ctx context.Context, from, to string, most int, found func(key string, text []byte)) (more bool, err error)
}

// Text is one from [Texts].
type Text[R comparable] struct {
	Bytes    []byte // which the Skeleton may keep
	Found    bool   // else there is none
	Revision R      // also that of a mark in the place of a deleted text, or zero
	Latest   bool   // a Get without latest is linearizable, too
}

// Skeleton is a [stores.Store] on an engine that keeps texts. Each text is that of [FormatCell], with a
// version that is drawn at random, since revisions go back when a server is restored from a backup. It is
// safe for use by several goroutines at once.
//
// An engine returns it, or a Store with more methods that has it in an unexported field.
type Skeleton[R comparable] struct {
	Texts     Texts[R]
	Namespace string
	At        string // the engine's name and its servers, such as "etcd at h:2379"; for errors

	// Reads says that Scan gives keys alone, and how many of their texts are read at once. 0 says that it
	// gives texts.
	Reads int

	// Version returns the revision of a text with a version, for an engine whose Put compares the versions itself,
	// and returns a [*stores.DamagedError] for a text that is no cell. nil stands for an engine that cannot.
	Version func(version uint64) R

	// Explain returns the error of an operation with the kind of the server's refusal. nil leaves errors
	// as they are.
	Explain func(ctx context.Context, err error) error

	// Ask asks the server for its settings, as Durability of [stores.Traits]; it may hang. nil stands for an engine whose
	// server does not tell.
	Ask func(ctx context.Context) (stores.Durability, error)

	// Conns are the connections: the engine's dial.Dialer or dial.Transport. Rest is called before an operation while no
	// other is under way, and Close at last. nil stands for an engine without.
	Conns interface {
		Rest()
		Close() error
	}

	// Own has the other traits.
	Own stores.Traits

	// Done ends what else the engine has opened, before Conns. It is called once. nil does nothing.
	Done func() error

	running atomic.Int64 // operations, also those that were left alone
	closed  atomic.Bool  // never reset
}

// wait is Wait for an operation.
func wait[T any, R comparable](ctx context.Context, s *Skeleton[R], call func() (T, error)) (T, error) {
	return Wait(ctx, func() (T, error) {
		defer s.running.Add(-1)
		if s.running.Add(1) == 1 && s.Conns != nil {
			s.Conns.Rest()
		}
		return call()
	})
}

// List returns the cells with keys in [from, to), at most limit of them. A text that is no cell is a
// [*stores.DamagedError].
func (s *Skeleton[R]) List(ctx context.Context, from, to string, limit int) ([]stores.Cell, error) {
	if limit < 1 || from >= to {
		return nil, nil
	}
	l, err := wait(ctx, s, func() (listing, error) { return s.list(ctx, from, to, limit) })
	if err != nil {
		return nil, s.Failed(ctx, "list", "", err)
	}
	if err := JoinDamaged(l.damaged); err != nil {
		return l.cells, s.Failed(ctx, "list", "", err)
	}
	return l.cells, nil
}

// keyBytes are those that a key can have. Servers refuse some others, such as U+0000.
const keyBytes = "-./0123456789_abcdefghijklmnopqrstuvwxyz"

// bound returns the lowest text of key bytes, or {, that is not below an end of a range: no key is between them.
func bound(end string) string {
	rest := strings.TrimLeft(end, keyBytes)
	n := len(end) - len(rest)
	switch {
	case rest == "":
		return cmp.Or(end, "-") // a server can take "" for NULL
	case rest[0] < 'z':
		return bound(end[:n] + string(rest[0]+1))
	case n == 0:
		return "{" // which follows z
	}
	return bound(end[:n-1] + string(end[n-1]+1))
}

// listing is the result of a List.
type listing struct {
	cells   []stores.Cell
	damaged []error
}

// entry is what Scan has found.
type entry struct {
	key     string
	text    []byte
	gone    bool  // since then
	damaged error // of a Get
}

func (s *Skeleton[R]) list(ctx context.Context, from, to string, limit int) (l listing, err error) {
	for more := true; more && from < to && len(l.cells) < limit; {
		var page []entry
		next := from
		more, err = s.Texts.Scan(ctx, bound(from), bound(to), limit-len(l.cells), func(key string, text []byte) {
			if key >= next {
				next = key + "\x00"
			}
			if from <= key && key < to && stores.CheckKey(key) == nil {
				page = append(page, entry{key: key, text: text})
			}
		})
		if err != nil {
			return l, err
		}
		slices.SortFunc(page, func(a, b entry) int { return strings.Compare(a.key, b.key) })
		page = slices.CompactFunc(page, func(a, b entry) bool { return a.key == b.key })
		for len(page) > 0 && len(l.cells) < limit {
			some := page[:min(len(page), limit-len(l.cells))]
			page = page[len(some):]
			if err := s.read(ctx, some); err != nil {
				return l, err
			}
			l.take(some)
		}
		more = more && next > from // else the server has not kept to the range
		from = next
	}
	return l, nil
}

// take makes cells of entries.
func (l *listing) take(some []entry) {
	for _, e := range some {
		cell, err := ParseCell(e.key, e.text)
		switch err = cmp.Or(e.damaged, err); {
		case e.gone:
		case err != nil:
			l.damaged = append(l.damaged, err)
		default:
			l.cells = append(l.cells, cell)
		}
	}
}

// read reads the texts that Scan has not given.
func (s *Skeleton[R]) read(ctx context.Context, some []entry) error {
	if s.Reads == 0 {
		return nil
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var reading sync.WaitGroup
	free := make(chan struct{}, s.Reads)
	for i := range some {
		free <- struct{}{}
		reading.Go(func() {
			defer func() { <-free }()
			if ctx.Err() != nil {
				return
			}
			is, err := s.Texts.Get(ctx, some[i].key, false)
			if errors.Is(err, stores.ErrDamaged) {
				some[i].damaged = err
				return
			}
			if err != nil {
				fail(err)
			}
			some[i].text, some[i].gone = is.Bytes, !is.Found
		})
	}
	reading.Wait()
	return context.Cause(ctx)
}

// Read returns the cell of a key, as by a linearizable Get.
func (s *Skeleton[R]) Read(ctx context.Context, key string) (stores.Cell, error) {
	cell, err := stores.Cell{}, stores.CheckKey(key)
	if err == nil {
		cell, _, err = s.get(ctx, key, true)
	}
	if err != nil {
		return stores.Cell{}, s.Failed(ctx, "read", key, err)
	}
	return cell, nil
}

// get returns a cell and its text.
func (s *Skeleton[R]) get(ctx context.Context, key string, latest bool) (stores.Cell, Text[R], error) {
	text, err := wait(ctx, s, func() (Text[R], error) { return s.Texts.Get(ctx, key, latest) })
	if err != nil || !text.Found {
		return stores.Cell{Key: key}, text, err
	}
	cell, err := ParseCell(key, text.Bytes)
	return cell, text, err
}

// Swap replaces the value of a cell if it has that version: by one Put for a new cell or with Version, and else by a
// Get that compares the version, and a Put on the condition that the revision is still that of the Get.
func (s *Skeleton[R]) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	next, err := nextVersion(key, version, value)
	if err == nil {
		err = s.swap(ctx, key, version, FormatCell(next, value))
	}
	if err != nil {
		return 0, s.Failed(ctx, "swap", key, err)
	}
	return next, nil
}

func (s *Skeleton[R]) swap(ctx context.Context, key string, version uint64, text []byte) error {
	if s.Version != nil {
		return s.put(ctx, key, s.Version(version), text)
	}
	var at R // there is no text
	if version != 0 {
		var err error
		if at, err = s.revision(ctx, key, version); err != nil {
			return err
		}
	}
	conflict := s.put(ctx, key, at, text)
	if !errors.Is(conflict, stores.ErrConflict) {
		return conflict
	}
	_, is, err := s.get(ctx, key, false)
	var none R
	switch {
	case errors.Is(err, stores.ErrDamaged):
		return err
	case err != nil:
		return conflict
	case is.Found && bytes.Equal(is.Bytes, text):
		// A proxy has sent the write twice, and the second found the first: no other process draws the
		// same version.
		return nil
	case version == 0 && !is.Found && is.Revision != none:
		return s.put(ctx, key, is.Revision, text) // over the mark of a deleted text
	}
	return conflict
}

func (s *Skeleton[R]) put(ctx context.Context, key string, at R, text []byte) error {
	_, err := wait(ctx, s, func() (struct{}, error) { return struct{}{}, s.Texts.Put(ctx, key, at, text) })
	return err
}

// revision returns that of a text with this version.
func (s *Skeleton[R]) revision(ctx context.Context, key string, version uint64) (R, error) {
	cell, is, err := s.get(ctx, key, false)
	if err == nil && cell.Version != version && !is.Latest {
		cell, is, err = s.get(ctx, key, true) // the server may lag behind
	}
	if err == nil && cell.Version != version {
		err = stores.ErrConflict
	}
	return is.Revision, err
}

// Traits has those of Own, and the Durability of Ask.
func (s *Skeleton[R]) Traits() stores.Traits {
	t := s.Own
	if s.Ask != nil {
		t.Durability = s.durability
	}
	return t
}

func (s *Skeleton[R]) durability(ctx context.Context) (stores.Durability, error) {
	promises, err := wait(ctx, s, func() (stores.Durability, error) { return s.Ask(ctx) })
	if err != nil {
		return stores.Durability{}, s.Failed(ctx, "ask for", "settings", err)
	}
	return promises, nil
}

// Close calls Done and closes Conns, and leaves them alone if that takes longer than a second. A second call does nothing.
func (s *Skeleton[R]) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err, _ := Wait(ctx, func() (err error, _ error) {
		if s.Done != nil {
			err = s.Done()
		}
		if s.Conns != nil {
			err = errors.Join(err, s.Conns.Close())
		}
		return err, nil
	})
	return err
}

// Failed is [Failed] with the engine's name, the namespace and the kind of the error by Explain.
func (s *Skeleton[R]) Failed(ctx context.Context, op, key string, err error) error {
	if s.Explain != nil {
		err = s.Explain(ctx, err)
	}
	return Failed(ctx, s.At, op, key, s.Namespace, err)
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

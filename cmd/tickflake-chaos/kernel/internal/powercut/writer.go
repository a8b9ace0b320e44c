// Package powercut checks what the directory store promises for a power cut: writers
// tell each write that was acknowledged, and after the cut a [Book] compares.
package powercut

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/directory"
)

// Fact is something that a writer was told: a cell was written, an ID or number was issued, or
// a call failed. A version of a cell must survive a power cut. A limit or a next number then does so
// too, for a cell is written as a whole.
type Fact struct {
	Writer  int    `json:"writer"`
	Cell    string `json:"cell,omitempty"` // its key
	Version int64  `json:"version,omitempty"`
	Issued  string `json:"issued,omitempty"` // the ID or number
	Failed  string `json:"failed,omitempty"`
	// At is how far the log of the disk was when the host heard of it.
	At int64 `json:"-"`
}

const (
	// patience is how long a call may take where many processes sync one emulated disk.
	patience = 20 * time.Second
	// window is longer than a write takes on a busy host: a grant that has ended before it
	// is acknowledged is of no use.
	window = 10 * time.Second
)

// pace is from a call to the next, and ownPace from a write of a cell of its own to the
// next: each is synced, and the disk of a machine on a busy host is slow.
const (
	pace    = 20 * time.Millisecond
	ownPace = 100 * time.Millisecond
)

// sequences are those that every writer takes numbers from.
var sequences = map[string]sequence.Definition{
	"ordered":   {Mode: sequence.Ordered, Start: 1},
	"segmented": {Mode: sequence.Segmented, Start: 1, MinStep: 1, MaxStep: 2},
}

// told is a directory that tells each swap that it has acknowledged.
type told struct {
	stores.Store
	tell func(Fact)
}

func (s told) Swap(ctx context.Context, key string, version uint64, value []byte) (uint64, error) {
	next, err := s.Store.Swap(ctx, key, version, value)
	if err == nil {
		s.tell(Fact{Cell: key, Version: int64(next)})
	}
	return next, err
}

var _ stores.Store = told{}

// Write issues IDs and numbers on the directory until the power is cut, and tells each fact. It returns
// an error if nothing can be claimed.
func Write(dir string, writer int, tell func(Fact)) error {
	begin, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened, err := stores.Open(begin, dir)
	if err != nil {
		return err
	}
	store := told{opened, tell}
	quiet := slog.New(slog.DiscardHandler)
	keeper, err := lease.Claim(begin, store, lease.WithWindow(window), lease.WithTimeout(patience), lease.WithLogger(quiet))
	if err != nil {
		return err
	}
	ids, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		return errors.Join(err, keeper.Close())
	}
	calls := []func(context.Context) (Fact, error){func(ctx context.Context) (Fact, error) {
		id, err := ids.NextContext(ctx)
		return Fact{Issued: fmt.Sprint("ID ", id)}, err
	}}
	for name, definition := range sequences {
		numbers, err := sequence.Open(begin, store, name, sequence.WithDefinition(definition),
			sequence.WithTimeout(patience), sequence.WithLogger(quiet))
		if err != nil {
			return err
		}
		calls = append(calls, func(ctx context.Context) (Fact, error) {
			n, err := numbers.Next(ctx)
			return Fact{Issued: fmt.Sprintf("number %d of %s", n, name)}, err
		})
	}
	// A cell of its own is written often.
	own := fmt.Sprintf("own/%d", writer)
	calls = append(calls, func(ctx context.Context) (Fact, error) {
		cell, err := store.Read(ctx, own)
		if err == nil {
			_, err = store.Swap(ctx, own, cell.Version, fmt.Append(nil, time.Now()))
		}
		time.Sleep(ownPace)
		return Fact{}, err
	})
	var running sync.WaitGroup
	for _, next := range calls {
		running.Go(func() {
			for ; ; time.Sleep(pace) {
				turn, cancel := context.WithTimeout(context.Background(), patience)
				fact, err := next(turn)
				cancel()
				if err != nil {
					fact = Fact{Failed: err.Error()}
				}
				if fact != (Fact{}) {
					tell(fact)
				}
			}
		})
	}
	running.Wait()
	return nil
}

// Found is what a directory has after a power cut.
type Found struct {
	Has     map[string]int64 `json:"has"` // the version of each cell
	Damaged []string         `json:"damaged,omitempty"`
	Image   int              `json:"image,omitempty"` // 0: the disk that the writers go on with
}

// Read reads a directory, which it makes if there is none.
func Read(dir string) (Found, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f := Found{Has: map[string]int64{}}
	store, err := stores.Open(ctx, dir)
	if err != nil {
		return f, err
	}
	cells, err := store.List(ctx, "", "~", 10_000)
	if errors.Is(err, stores.ErrDamaged) {
		f.Damaged = append(f.Damaged, err.Error())
	} else if err != nil {
		return f, err
	}
	for _, cell := range cells {
		f.Has[cell.Key] = int64(cell.Version)
	}
	return f, nil
}

// Writers is how many write at each cut, each as a process does: with a store of its own.
const Writers = 8

// Prefix begins the names of the faults that cut the power.
const Prefix = "power-cut-"

// FileSystems are those whose power is cut.
var FileSystems = []string{"ext4", "xfs", "btrfs"}

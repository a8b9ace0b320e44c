package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/tickflake/tickflake/stores"
)

// Two texts of a namespace prove its server. In capitals they are no keys.
const (
	conditions = "CONDITIONS"
	races      = "RACES"
)

// Errors of servers that must not be trusted, and of one that is busy.
var (
	// ErrIgnores is that of a server that ignores the condition of a write.
	ErrIgnores = stores.Refused.New("the server ignores conditions of writes, so IDs would be issued twice: take a version that heeds them, or another server")

	// ErrRaces is that of a server that checks the condition before it locks the key.
	ErrRaces = stores.Refused.New("writes at once on one condition have succeeded, so IDs would be issued twice: " +
		"take a server that heeds conditions under load, or set it to be strongly consistent")

	// ErrBusy is that of a Put that the server has refused because another write was under way.
	ErrBusy = stores.Passing.New("the server was busy with another write of the same key")
)

// Heeds proves that a server of a protocol that others speak, too, heeds the condition of a Put; many
// ignore one, and would let each process overwrite the cells of others. The error is [ErrIgnores],
// or that of a Put. wrong is a revision that no text has. It makes three writes, of which one succeeds, and
// only the first time. An engine calls it in its Durability.
func Heeds[R comparable](ctx context.Context, s *Skeleton[R], wrong R) error {
	var none R
	if err := s.put(ctx, conditions, none, unlike()); err != nil && !errors.Is(err, stores.ErrConflict) {
		return err
	}
	for _, revision := range []R{none, wrong} {
		switch err := s.put(ctx, conditions, revision, unlike()); {
		case err == nil:
			return ErrIgnores
		case !errors.Is(err, stores.ErrConflict):
			return err
		}
	}
	return nil
}

const (
	writers = 32 // of one race
	tries   = 10 // of a race that another process disturbs
)

// Races proves that of 32 writes at once on one condition, one succeeds: some servers check the condition
// before they lock the key. The error is [ErrRaces], or that of a Get or Put. An engine calls it in its
// Probe, which is for the first process of a fleet and for operators: it makes 32 to 64 writes.
func Races[R comparable](ctx context.Context, s *Skeleton[R]) error {
	for range tries {
		is, err := Wait(ctx, func() (Text[R], error) { return s.Texts.Get(ctx, races, true) })
		if err != nil {
			return err
		}
		won, err := race(ctx, s, is.Revision)
		switch {
		case won > 1: // also if others failed
			return ErrRaces
		case err != nil:
			return err
		case won == 1 && is.Found:
			return nil
		}
		// The text is new, and the second race replaces it. Or no write has won, since another process
		// races as well.
	}
	return ErrBusy
}

// race returns how many of the writes at once have succeeded.
func race[R comparable](ctx context.Context, s *Skeleton[R], revision R) (int64, error) {
	var won atomic.Int64
	var writing sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		writing.Go(func() {
			switch err := s.put(ctx, races, revision, unlike()); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, stores.ErrConflict) && !errors.Is(err, ErrBusy):
				errs[i] = err
			}
		})
	}
	writing.Wait()
	return won.Load(), cmp.Or(errs...)
}

// unlike returns a text that was never written: a revision may follow from the text.
func unlike() []byte {
	return []byte("tickflake proves by this text that the server heeds conditions: " + rand.Text() + "\n")
}

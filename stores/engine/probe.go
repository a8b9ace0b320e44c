package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// Texts of a namespace that tell of its server. In capitals they are no keys.
const (
	conditions = "CONDITIONS"
	races      = "RACE" // and a number
	passed     = "PROBED"

	// Mark is the key of the text by which [Races] has a server refused. Who has repaired the server deletes it.
	Mark = "REFUSED"
)

// Errors of servers that must not be trusted, and of one that is busy.
var (
	// ErrIgnores: the server ignores the condition of a write.
	ErrIgnores = stores.Permanent.New("the server ignores conditions of writes, so IDs would be issued twice: take a version that heeds them, or another server")

	// ErrRaces: the server checks the condition of a write before it locks the key.
	ErrRaces = stores.Permanent.New("writes at once on one condition have succeeded, so IDs would be issued twice: " +
		"take a server that heeds conditions under load, or set it to be strongly consistent")

	// ErrBusy: the server has refused a Put because another write was under way.
	ErrBusy = stores.Transient.New("the server was busy with another write of the same key")
)

// Heeds checks that a server of a protocol that others speak, too, heeds the condition of a Put; many
// ignore one, and would let each process overwrite the cells of others. The error is [ErrIgnores],
// that of a Put, or [ErrRaces] if [Races] has found it before. wrong is a revision that no text has. It makes two
// writes, of which none succeeds, and the first time three. An engine calls it in its Ask.
func Heeds[R comparable](ctx context.Context, s *Skeleton[R], wrong R) error {
	if err := marked(ctx, s); err != nil {
		return err
	}
	var none R
	err := s.put(ctx, conditions, none, unlike())
	if err == nil { // it is new
		err = s.put(ctx, conditions, none, unlike())
	}
	if errors.Is(err, stores.ErrConflict) {
		err = s.put(ctx, conditions, wrong, unlike())
	}
	switch {
	case err == nil:
		return ErrIgnores
	case errors.Is(err, stores.ErrConflict):
		return nil
	}
	return err
}

// marked returns ErrRaces if there is the Mark.
func marked[R comparable](ctx context.Context, s *Skeleton[R]) error {
	mark, err := s.latest(ctx, Mark)
	if err == nil && mark.Found {
		err = fmt.Errorf("%w (as was seen before)", ErrRaces)
	}
	return err
}

// latest returns a text.
func (s *Skeleton[R]) latest(ctx context.Context, key string) (Text[R], error) {
	return Wait(ctx, func() (Text[R], error) { return s.Texts.Get(ctx, key, true) })
}

// Two gateways on one directory, neither of which sees the writes that the other has under way, let two of 8 writes succeed in 7
// of 100 races: on an idle machine 96 races find them in over 99% of probes. With more writes in a race, most come too late to
// matter.
const (
	lanes   = 2  // races at once
	laps    = 24 // of a lane, one after the other; each has two races
	writers = 8  // at once, on one condition
	tries   = 10 // of a race whose writes fail
)

// Races looks for a server that checks the condition of a Put before it locks the key: in each of 96 races, of 8
// writes at once on one condition, only one may succeed. A write that fails voids no race. The error is [ErrRaces], or
// that of a Get or Put. A server that has passed is not probed once more, unless again; one that has not is refused by all from then
// on, until its [Mark] is deleted. An engine calls it in the Probe of its Traits.
func Races[R comparable](ctx context.Context, s *Skeleton[R], again bool) error {
	if err := marked(ctx, s); err != nil {
		return err
	}
	if was, err := s.latest(ctx, passed); err != nil || was.Found && !again {
		return err
	}
	var errs [lanes]error
	var racing sync.WaitGroup
	for lane := range lanes {
		racing.Go(func() {
			for n := 0; n < laps && errs[lane] == nil; n++ {
				errs[lane] = lap(ctx, s, fmt.Sprint(races, lane*laps+n), again)
			}
		})
	}
	racing.Wait()
	err := cmp.Or(errs[:]...)
	switch all := errors.Join(errs[:]...); {
	case errors.Is(all, ErrRaces):
		err = ErrRaces
	case err == nil, errors.Is(all, errPassed):
		err = Retry(ctx, func() error { return marked(ctx, s) }) // by a process that has probed at the same time
	}
	switch {
	case err == nil:
		_ = leave(ctx, s, passed) // else it is probed once more
	case errors.Is(err, ErrRaces):
		if problem := leave(ctx, s, Mark); problem != nil {
			err = fmt.Errorf("%w; others are not told: %w", err, problem)
		}
	}
	return err
}

// leave makes a text, if there is none.
func leave[R comparable](ctx context.Context, s *Skeleton[R], key string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return Retry(ctx, func() error {
		var none R
		if err := s.put(ctx, key, none, unlike()); !errors.Is(err, stores.ErrConflict) {
			return err
		}
		return nil
	})
}

// errPassed ends a lap that others disturb, of whom one has ended its probe.
var errPassed = errors.New("the server has passed the probe of another process")

// lap has writes race to make a text, and then to replace it. If there was one, they replace it twice.
func lap[R comparable](ctx context.Context, s *Skeleton[R], key string, again bool) (err error) {
	var at R // there is no text yet
	var pauses Backoff
	for left, n := 2, 0; left > 0; n++ {
		was := at
		won, failed := race(ctx, s, key, &at, left > 1)
		switch {
		case won > 1:
			return ErrRaces
		case failed != nil && s.Explain != nil:
			failed = s.Explain(ctx, failed)
		}
		if won == 0 && failed == nil && at != was { // another process has won: it gets ahead
			if mark, err := s.latest(ctx, passed); err == nil && mark.Found && !again {
				return errPassed
			}
			n--
		}
		switch {
		case failed == nil && won == 1:
			left--
		case n >= tries || !stores.KindOf(failed).Retryable():
			return cmp.Or(failed, ErrBusy)
		default:
			if end := pauses.Wait(ctx); end != nil {
				return cmp.Or(failed, end)
			}
		}
	}
	return nil
}

// race returns how many of the writes at once have won. The error is that of most of them. at is the revision of the text
// before the race, and also after it if more follow or it must go on.
func race[R comparable](ctx context.Context, s *Skeleton[R], key string, at *R, more bool) (won int, err error) {
	var writing sync.WaitGroup
	texts, errs := make([][]byte, writers), make([]error, writers)
	for i := range writers {
		texts[i] = unlike()
		writing.Go(func() { errs[i] = s.put(ctx, key, *at, texts[i]) })
	}
	writing.Wait()
	unknown := map[string]bool{}
	for i, one := range errs {
		switch {
		case one == nil:
			won++
		case !errors.Is(one, stores.ErrConflict) && !errors.Is(one, ErrBusy):
			unknown[string(texts[i])], err = true, one
		}
	}
	if won == 1 && len(unknown) == 0 && !more {
		return won, nil
	}
	is, problem := s.latest(ctx, key)
	if problem != nil {
		return won, problem
	}
	*at = is.Revision
	if unknown[string(is.Bytes)] {
		won++ // and its answer was lost
	}
	if len(unknown) <= writers/2 {
		err = nil
	}
	return won, err
}

// unlike returns a text that was never written: a revision may follow from the text.
func unlike() []byte {
	return []byte("tickflake finds out by this text whether the server heeds conditions: " + rand.Text() + "\n")
}

package s3

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// Two objects of a namespace prove the server. In capitals they are no keys.
const (
	conditions = "CONDITIONS"
	races      = "RACES"
)

// Durability checks that the server heeds conditions: many servers that speak S3 ignore one of
// them, and would let each process overwrite what another wrote.
func (s *Store) Durability(ctx context.Context) (stores.Durability, error) {
	if err := s.bucket.heeds(ctx); err != nil {
		return stores.Durability{}, engine.OpenFailed(ctx, s.At(), refused(err))
	}
	return stores.Durability{Risks: s.bucket.expiring(ctx)}, nil
}

// expiring names the rules that delete the cells. Without a right to ask there is no answer.
func (b *bucket) expiring(ctx context.Context) (risks []string) {
	rules, err := b.client.GetBucketLifecycle(ctx, b.name)
	if err != nil {
		return nil // there are none, or the server does not say
	}
	for _, rule := range rules.Rules {
		prefix := cmp.Or(rule.RuleFilter.Prefix, rule.RuleFilter.And.Prefix, rule.Prefix)
		deletes := !rule.Expiration.IsDaysNull() || !rule.Expiration.IsDateNull()
		if deletes && rule.Status == "Enabled" && (strings.HasPrefix(b.prefix, prefix) || strings.HasPrefix(prefix, b.prefix)) {
			risks = append(risks, fmt.Sprintf("the lifecycle rule %q of the bucket deletes objects below %q: leave %s out of it", rule.ID, prefix, b.prefix))
		}
	}
	return risks
}

func (b *bucket) heeds(ctx context.Context) error {
	object := b.prefix + conditions
	if err := b.put(ctx, object, "", unlike()); err != nil && !errors.Is(err, stores.ErrConflict) {
		return err
	}
	for _, etag := range []string{"", "00000000000000000000000000000000"} {
		switch err := b.put(ctx, object, etag, unlike()); {
		case err == nil:
			return fmt.Errorf("%s: %w", b.server(), errIgnores)
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

// Probe checks that of many writes at once on one condition, one succeeds: some servers check
// the condition before they lock the object. It is for the first process of a fleet, and for
// operators: it makes 32 to 64 writes.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.bucket.probe(ctx); err != nil {
		return s.Failed(ctx, "probe", races, err)
	}
	return nil
}

func (b *bucket) probe(ctx context.Context) error {
	object := b.prefix + races
	for range tries {
		is, err := b.get(ctx, object)
		if err != nil {
			return err
		}
		won, err := b.race(ctx, object, is.Revision)
		switch {
		case err != nil:
			return err
		case won > 1:
			return fmt.Errorf("%s: %d of %d: %w", b.server(), won, writers, errRaces)
		case won == 1 && is.Found:
			return nil
		}
		// The object is new, and the second race replaces it. Or nobody has won, since
		// another process probes as well.
	}
	return fmt.Errorf("%w: %d races of %d writes had no winner", errBusy, tries, writers)
}

// race returns how many of the writes at once have succeeded.
func (b *bucket) race(ctx context.Context, object, etag string) (won int64, err error) {
	var wins atomic.Int64
	var group errgroup.Group
	for range writers {
		group.Go(func() error {
			err := b.put(ctx, object, etag, unlike())
			if err == nil {
				wins.Add(1)
			}
			if errors.Is(err, stores.ErrConflict) || errors.Is(err, errBusy) {
				return nil
			}
			return err
		})
	}
	err = group.Wait()
	return wins.Load(), err
}

// unlike returns a text that was never written: an ETag follows from the text.
func unlike() []byte {
	return []byte("tickflake proves by this object that the server heeds conditions: " + rand.Text() + "\n")
}

package cases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Counted are the ways to take a counted number with tickflake, in segmented mode.
func Counted() []Case { return []Case{Number(), Numbers(1000)} }

// AddFloor is the least that a counted number can cost: one atomic addition.
func AddFloor() Case {
	c := floor("floor: atomic addition", func(word *Word) Loop {
		return func(n int) error {
			for range n {
				word.Add(1)
			}
			return nil
		}
	})
	c.Clockless = true
	return c
}

// SwapFloor is a counter without a bound that goroutines share: each swaps until its swap
// succeeds.
func SwapFloor() Case {
	return floor("floor: compare-and-swap loop", func(word *Word) Loop {
		return func(n int) error {
			for range n {
				for {
					old := word.Load()
					if word.CompareAndSwap(old, old+1) {
						break
					}
				}
			}
			return nil
		}
	})
}

// Number calls Sequence.Next in segmented mode.
func Number() Case { return counted("Sequence.Next", loopNumber) }

// Numbers calls Sequence.NextN for so many numbers in a row.
func Numbers(size int) Case {
	c := counted(fmt.Sprintf("Sequence.NextN(%d)", size), loopNumbers(size))
	c.Unit = size
	return c
}

// counted is a case of one sequence. Its segments have the largest step, so the store is
// hardly ever asked: the case shows the cost of a number that is in reserve.
func counted(name string, loop func(*sequence.Sequence) Loop) Case {
	return Case{Name: name, Group: results.Ours, Bits: 63, Clockless: true, Note: "a counted number, in segmented mode: no clock is read", Open: func(ctx context.Context) (Source, error) {
		store := storetest.NewMemory()
		s, err := sequence.Open(ctx, store, "orders", sequence.WithLogger(slog.New(slog.DiscardHandler)),
			sequence.WithDefinition(sequence.Definition{Start: 1, MinStep: sequence.MaxStep, MaxStep: sequence.MaxStep}))
		if err != nil {
			return Source{}, errors.Join(err, store.Close())
		}
		return Source{Loop: func() Loop { return loop(s) }, Close: func() error { return errors.Join(s.Close(), store.Close()) }}, nil
	}}
}

func loopNumber(s *sequence.Sequence) Loop {
	return func(n int) error {
		ctx := context.Background()
		for range n {
			if _, err := s.Next(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

func loopNumbers(size int) func(*sequence.Sequence) Loop {
	return func(s *sequence.Sequence) Loop {
		return func(n int) error {
			ctx := context.Background()
			for ; n > 0; n -= size {
				if _, err := s.NextN(ctx, int64(size)); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

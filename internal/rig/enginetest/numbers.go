package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
)

// fleetSequence is the sequence that all runs of a fleet take numbers of. Its segments are
// small, so that a refill is always near.
const fleetSequence = "fleet"

var fleetNumbers = sequence.Definition{Start: 1, MinStep: 20, MaxStep: 20}

// count opens the sequence, takes numbers until the run ends, and closes it.
func (r *run) count() {
	ticker := time.NewTicker(time.Second / time.Duration(r.fleet.config.Rate))
	defer ticker.Stop()
	var numbers *sequence.Sequence
	last := int64(0)
	for r.pause(ticker.C) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(r.ctx, callTimeout)
		var number int64
		var err error
		if numbers == nil {
			numbers, err = r.openSequence(ctx)
		}
		if err == nil {
			number, err = numbers.Next(ctx)
		}
		cancel()
		r.took(time.Since(begin))
		if err == nil {
			r.recordNumber(number, last)
			last = number
		} else if r.ctx.Err() == nil {
			r.failedNumber(err)
		}
	}
	if numbers == nil {
		return
	}
	if err := numbers.Close(); err != nil && !r.store.dead.Load() && !errors.Is(err, sequence.ErrNotGivenBack) {
		r.failed("close", err)
	}
}

func (r *run) openSequence(ctx context.Context) (*sequence.Sequence, error) {
	log := slog.New(slog.NewTextHandler(&r.fleet.logged, nil)).With("run", r.String())
	return sequence.Open(ctx, r.store, fleetSequence, sequence.WithDefinition(fleetNumbers),
		sequence.WithTimeout(r.fleet.config.Timeout), sequence.WithLogger(log))
}

// failedNumber notes an error of a call for a number.
func (r *run) failedNumber(err error) {
	r.failed("number", err)
	r.fleet.mu.Lock()
	defer r.fleet.mu.Unlock()
	r.wentBack = errors.Is(err, stores.ErrWentBack)
}

// recordNumber notes a number that a call has returned after last.
func (r *run) recordNumber(number, last int64) {
	f := r.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report.Numbers++
	r.numbers++
	if number <= last {
		f.report.Disorder = append(f.report.Disorder, fmt.Sprintf("%v issued the number %d after %d", r, number, last))
	}
	if first, ok := f.taken[number]; ok {
		f.report.Repeated = append(f.report.Repeated, fmt.Sprintf("%d: by %v, and after %v by %v", number, first, time.Since(f.began).Round(time.Millisecond), r))
	}
	f.taken[number] = r
}

// checkNumbers fails the test if a number was issued twice, or the sequence says that the
// store went back.
func (r *Report) checkNumbers(t testing.TB) {
	t.Helper()
	for kind := range r.Errors {
		if strings.HasPrefix(kind, "number:") && strings.Contains(kind, "ErrWentBack") {
			t.Errorf("the store went back: %s", r.Examples[kind])
		}
	}
	for i, text := range r.Repeated {
		if i == 10 {
			t.Errorf("and %d more", len(r.Repeated)-10)
			break
		}
		t.Error("number issued twice: " + text)
	}
}

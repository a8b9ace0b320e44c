package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/segment"
	"github.com/tickflake/tickflake/stores"
)

// All calls of the store stand in this file, each within the timeout. Their errors wrap
//
//   - stores.ErrConflict: a swap found another version and changed nothing,
//   - stores.ErrDamaged: a cell cannot be read, and a retry does not help,
//   - ErrStore: anything else; the outcome of a swap is unknown.

// read reads the cell if it is in doubt.
func (s *Sequence) read(ctx context.Context) error {
	if !s.doubt {
		return nil
	}
	cell, err := readCell(ctx, s.store, s.name, s.config.timeout)
	if err != nil {
		s.counters.failures.Add(1)
		return err
	}
	s.cell, s.doubt = cell, false
	return nil
}

// swap writes the cell.
func (s *Sequence) swap(ctx context.Context, version uint64, r cell.Sequence) (uint64, error) {
	version, err := swapCell(ctx, s.store, s.name, s.config.timeout, version, r)
	if err != nil && !errors.Is(err, stores.ErrConflict) {
		s.counters.failures.Add(1)
	}
	return version, err
}

func readCell(ctx context.Context, store stores.Store, name string, timeout time.Duration) (segment.Cell, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := store.Read(ctx, cell.SequenceKey(name))
	if err != nil {
		return segment.Cell{}, storeError("read", name, err)
	}
	return decode(name, c)
}

func decode(name string, found stores.Cell) (segment.Cell, error) {
	c := segment.Cell{Version: found.Version}
	if found.Version == 0 {
		return c, nil
	}
	r, err := cell.DecodeSequence(found.Value)
	if err == nil {
		_, err = ParseMode(r.Mode)
		if err != nil {
			err = fmt.Errorf("%w: %w; it was edited by hand", stores.ErrDamaged, err)
		}
	}
	if err != nil {
		problem := strings.TrimPrefix(err.Error(), stores.ErrDamaged.Error()+": ")
		if errors.Is(err, cell.ErrNewer) {
			return c, fmt.Errorf("sequence %q: %w", name, &stores.DamagedError{Key: cell.SequenceKey(name), Problem: problem})
		}
		return c, &stores.DamagedError{
			Key:     cell.SequenceKey(name),
			Problem: problem + ": put back the text that the cell had, from a log or a backup; or stop all processes that use it, delete the cell, and create the sequence above all numbers in use",
		}
	}
	c.Record = r
	return c, nil
}

func swapCell(ctx context.Context, store stores.Store, name string, timeout time.Duration, version uint64, r cell.Sequence) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	version, err := store.Swap(ctx, cell.SequenceKey(name), version, r.Encode())
	return version, storeError("swap", name, err)
}

// storeError wraps ErrStore, unless the error is a conflict or damage.
func storeError(op, name string, err error) error {
	switch {
	case err == nil, errors.Is(err, stores.ErrConflict), errors.Is(err, stores.ErrDamaged):
		return err
	}
	problem := "store does not answer"
	switch {
	case stores.KindOf(err) == stores.Refused:
		problem = "store refuses"
	case errors.Is(err, stores.ErrOverloaded):
		problem = stores.ErrOverloaded.Error()
	}
	return &wrapped{
		text: fmt.Sprintf("%s: %s sequence %q: %s", problem, op, name, oneLine(err)),
		errs: []error{ErrStore, err},
	}
}

func listCells(ctx context.Context, store stores.Store, from, to string, limit int) ([]stores.Cell, error) {
	ctx, cancel := context.WithTimeout(ctx, timeoutOf(ctx))
	defer cancel()
	cells, err := store.List(ctx, from, to, limit)
	if err != nil && !errors.Is(err, stores.ErrDamaged) {
		err = &wrapped{text: "store does not answer: list sequences: " + oneLine(err), errs: []error{ErrStore, err}}
	}
	return cells, err
}

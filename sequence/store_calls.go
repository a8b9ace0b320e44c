package sequence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
)

// callsOf makes the calls for the cell of one sequence.
func callsOf(store stores.Store, name string, timeout time.Duration) drive.Calls {
	return drive.Calls{Store: store, Timeout: timeout, What: "sequence " + strconv.Quote(name)}
}

func readCell(ctx context.Context, calls *drive.Calls, name string) (count.Cell, error) {
	found, err := calls.Read(ctx, cell.SequenceKey(name))
	if err != nil {
		return count.Cell{}, err
	}
	return decode(name, found)
}

func swapCell(ctx context.Context, calls *drive.Calls, name string, version uint64, r cell.Sequence) (uint64, error) {
	return calls.Swap(ctx, cell.SequenceKey(name), version, r.Encode())
}

func decode(name string, found stores.Cell) (count.Cell, error) {
	c := count.Cell{Version: found.Version}
	if found.Version == 0 {
		return c, nil
	}
	r, err := cell.DecodeSequence(found.Value)
	if err == nil {
		if _, err = ParseMode(r.Mode); err != nil {
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

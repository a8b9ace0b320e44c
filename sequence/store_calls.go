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

// remote is the cell of one sequence in its store.
type remote struct {
	store drive.Calls
	name  string
}

// remoteOf fails if the store is nil, or name is no name.
func remoteOf(store stores.Store, name string, timeout time.Duration) (remote, error) {
	calls := drive.Calls{Store: store, Timeout: timeout, What: "sequence " + strconv.Quote(name)}
	if drive.IsNil(store) {
		return remote{}, &stores.OptionError{Option: "store", Err: fmt.Errorf("%w: give the store that stores.Open returns, or that of a generator of generator.Open", drive.ErrNil)}
	}
	return remote{calls, name}, ValidateName(name)
}

func (a *remote) read(ctx context.Context) (count.Cell, error) {
	found, err := a.store.Read(ctx, cell.SequenceKey(a.name))
	if err != nil {
		return count.Cell{}, err
	}
	return decode(a.name, found)
}

func (a *remote) swap(ctx context.Context, version uint64, r cell.Sequence) (uint64, error) {
	return a.store.Swap(ctx, cell.SequenceKey(a.name), version, cell.Reads(r.Encode(), cell.DecodeSequence))
}

func decode(name string, found stores.Cell) (count.Cell, error) {
	c := count.Cell{Version: found.Version}
	if found.Version == 0 {
		return c, nil
	}
	r, err := cell.DecodeSequence(found.Value)
	if err == nil {
		if err = Mode(r.Mode).check(); err != nil {
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

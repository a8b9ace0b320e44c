package generator

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
)

// lane is some slots of each tick of a bucket, which belong to who has drawn it.
type lane struct{ node, first int64 }

// drawer draws the lanes of one bucket, of the node numbers in turn, as internal/grant/past.go says, by the machine of
// internal/count. It is for one goroutine at a time.
type drawer struct {
	calls   *drive.Calls
	lanes   cell.Lanes
	bucket  int64
	nodes   []int64 // that may have a lane left; the first has its machine
	machine *count.Machine
}

// draw returns a lane that no one else gets. After an error no lane was drawn, or one that no one uses; the next call
// finds out which. The error is [ErrPastFull], or wraps [drive.ErrStore], [stores.ErrConflict] if other processes draw from
// the bucket all the time, [stores.ErrWentBack] or [stores.ErrDamaged].
func (b *drawer) draw(ctx context.Context) (lane, error) {
	for len(b.nodes) > 0 {
		if b.machine == nil {
			template := b.lanes.Cell()
			template.Period = ""
			m := count.New(count.Cell{Record: template}, false) // its first write makes the cell
			b.machine = &m
		}
		d := draw{drawer: b}
		err := drive.Run(ctx, &d)
		switch {
		case d.drawn:
			return lane{b.nodes[0], d.index * b.lanes.Width}, nil
		case errors.Is(err, ErrPastFull):
			b.nodes, b.machine = b.nodes[1:], nil
		case err != nil:
			return lane{}, err
		}
	}
	return lane{}, ErrPastFull
}

// draw is the [drive.Driver] of a draw.
type draw struct {
	*drawer
	in     count.Input
	op     count.Op
	result count.Result
	drawn  bool
	index  int64 // of the lane
}

func (*draw) Lock()   {}
func (*draw) Unlock() {}

// Next wants one lane. All that were drawn before count as used.
func (d *draw) Next() (drive.Kind, error) {
	if d.drawn {
		return drive.None, nil
	}
	d.in = count.Input{Name: cell.Token(), Want: 1, Need: 1, Used: cell.MaxIndex}
	d.op = d.machine.Next(d.in)
	switch {
	case d.op.Why == count.Exhausted:
		return drive.None, ErrPastFull
	case d.op.Why == count.Mark:
		return drive.Prepare, nil
	case d.op.Kind == count.Swap:
		return drive.Write, nil
	}
	return drive.Ask, nil
}

func (d *draw) Do(ctx context.Context) (err error) {
	key := cell.LaneKey(d.nodes[0], d.bucket)
	d.result = count.Result{}
	if d.op.Kind == count.Read {
		d.result.Cell, err = d.read(ctx, key)
	} else {
		d.result.Version, err = d.calls.Swap(ctx, key, d.op.Version, cell.Reads(d.op.Record.Encode(), cell.DecodeSequence))
	}
	switch {
	case errors.Is(err, stores.ErrConflict):
		d.result.Status = count.Conflict
		return nil
	case err != nil:
		d.result.Status = count.Failed
	}
	return err
}

func (d *draw) read(ctx context.Context, key string) (count.Cell, error) {
	found, err := d.calls.Read(ctx, key)
	if err != nil || found.Version == 0 {
		return count.Cell{}, err
	}
	r, err := cell.DecodeSequence(found.Value)
	if want := d.machine.Known().Record; err == nil && (r.Mode != want.Mode || r.Stride != want.Stride || r.Max != want.Max) {
		err = cell.Damaged("it counts other lanes than the definition of its node number; it was edited by hand")
	}
	if err != nil {
		return count.Cell{}, fmt.Errorf("cell %s: %w", key, err)
	}
	return count.Cell{Version: found.Version, Record: r}, nil
}

func (d *draw) Done() (settled bool, err error) {
	return drive.Act(d.machine.Done(d.in, d.op, d.result), func(e count.Event) (bool, error) {
		switch e.Kind {
		case count.Granted: // (P4)
			d.drawn, d.index = true, int64(e.Range.From)
		case count.Suspected, count.Trusted:
			return false, nil
		case count.Marked, count.WentBack, count.Deleted:
			return true, drive.Wrap(fmt.Sprintf("%v: lanes of node number %d are gone: IDs for old rows may have been issued twice; retire the numbers, 'tickflake lease past --retire', before a process uses the store",
				stores.ErrWentBack, d.nodes[0]), stores.ErrWentBack)
		}
		return true, nil
	})
}

func (d *draw) Busy() error {
	return drive.Busy(fmt.Sprintf("lanes of node number %d: %d writes in a row met those of other processes: try again", d.nodes[0], drive.InARow))
}

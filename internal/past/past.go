// Package past draws the lanes in which node numbers that were given to the past issue IDs for old rows. The rules are
// those of package grant (past.go), and the counting is that of package count.
//
// You need these names: [Find] lists the numbers, and a [Bucket] draws the lanes of a span of time.
package past

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/count"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
)

// Number is a node number that was given to the past.
type Number struct {
	Node int64
	cell.Lanes
	State   cell.Past
	MovedTo string // the store that its fleet has left to, or empty: its lanes are counted here all the same
}

// Find returns the numbers of a store that were given to the past, in their order. The error wraps [stores.ErrDamaged] if
// a cell cannot be read, or [drive.ErrStore].
func Find(ctx context.Context, calls *drive.Calls) (all []Number, err error) {
	err = calls.All(ctx, cell.PastFrom, cell.PastTo, func(c stores.Cell) error {
		node, ok := cell.PastOf(c.Key)
		if !ok {
			return nil
		}
		lanes, err := cell.DecodeLanes(c.Value)
		if err != nil {
			return fmt.Errorf("lanes of node number %d: %w", node, err)
		}
		found, err := calls.Read(ctx, cell.NodeKey(node))
		if err != nil || found.Version == 0 {
			return err
		}
		r, err := cell.DecodeNode(found.Value)
		if err != nil {
			return fmt.Errorf("node number %d: %w", node, err)
		}
		if r.Past != "" {
			all = append(all, Number{node, lanes, r.Past, r.MovedTo})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Number) int { return cmp.Compare(a.Node, b.Node) })
	return all, err
}

// Lane is some slots of each tick of a bucket, which belong to who has drawn it.
type Lane struct{ Node, First int64 }

// ErrFull is returned by [Bucket.Draw] when no lane is left.
var ErrFull = errors.New("all lanes are drawn")

// Bucket draws the lanes of one bucket, of its numbers in turn. It is for one goroutine at a time.
type Bucket struct {
	calls   *drive.Calls
	index   int64
	numbers []Number // that may have a lane left; the first has its machine
	machine *count.Machine
}

// NewBucket returns the bucket with an index, of numbers with the same lanes.
func NewBucket(calls *drive.Calls, numbers []Number, index int64) *Bucket {
	return &Bucket{calls: calls, index: index, numbers: numbers}
}

// Draw returns a lane that no one else gets. After an error no lane was drawn, or one that no one uses; the next call
// finds out which. The error is [ErrFull], or wraps [drive.ErrStore], [stores.ErrConflict] if other processes draw from
// the bucket all the time, [stores.ErrWentBack] or [stores.ErrDamaged].
func (b *Bucket) Draw(ctx context.Context) (Lane, error) {
	for len(b.numbers) > 0 {
		if b.machine == nil {
			template := b.numbers[0].Cell()
			template.Period = ""
			m := count.New(count.Cell{Record: template}, false) // its first write makes the cell
			b.machine = &m
		}
		d := draw{Bucket: b}
		err := drive.Run(ctx, &d)
		switch {
		case d.drawn:
			return Lane{b.numbers[0].Node, d.lane * b.numbers[0].Width}, nil
		case errors.Is(err, ErrFull):
			b.numbers, b.machine = b.numbers[1:], nil
		case err != nil:
			return Lane{}, err
		}
	}
	return Lane{}, ErrFull
}

// draw is the [drive.Driver] of a draw.
type draw struct {
	*Bucket
	in     count.Input
	op     count.Op
	result count.Result
	drawn  bool
	lane   int64 // its index
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
		return drive.None, ErrFull
	case d.op.Why == count.Mark:
		return drive.Prepare, nil
	case d.op.Kind == count.Swap:
		return drive.Write, nil
	}
	return drive.Ask, nil
}

func (d *draw) Do(ctx context.Context) (err error) {
	key := cell.LaneKey(d.numbers[0].Node, d.index)
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
			d.drawn, d.lane = true, int64(e.Range.From)
		case count.Suspected, count.Trusted:
			return false, nil
		case count.Marked, count.WentBack, count.Deleted:
			return true, drive.Wrap(fmt.Sprintf("%v: lanes of node number %d are gone: IDs for old rows may have been issued twice; retire the numbers, 'tickflake lease past --retire', before a process uses the store",
				stores.ErrWentBack, d.numbers[0].Node), stores.ErrWentBack)
		}
		return true, nil
	})
}

func (d *draw) Busy() error {
	return drive.Busy(fmt.Sprintf("lanes of node number %d: %d writes in a row met those of other processes: try again", d.numbers[0].Node, drive.InARow))
}

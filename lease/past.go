package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/stores"
)

// Past are node numbers that issue IDs for old rows: see [GivePast].
type Past struct {
	From int64 `json:"from"`
	To   int64 `json:"to"` // the last one

	// Bucket is the time in which lanes are counted, from the epoch of the layout on: a process writes to the store
	// once for each bucket of which it has rows. 0 stands for 24h, or for what suits a store whose cells are
	// dear to keep, such as 720h on Kubernetes. It is a multiple of the layout's tick, of at most 2³² ticks.
	Bucket time.Duration `json:"-"`
	// Lane is how many IDs of one tick a process gets by one write: a power of two, up to all of the tick. 0 stands
	// for 16, or all of the tick if these are fewer.
	Lane int64 `json:"lane"`

	Retired bool `json:"retired,omitempty"` // no ID is issued with them any more: see [RetirePast]
	// Unused is the operator's word, for GivePast, that no ID was ever issued with these numbers, although the fleet has a floor, or
	// the store may have gone back.
	Unused bool `json:"-"`
}

// The bucket and the lane of a [Past] that says none.
const (
	defaultBucket = 24 * time.Hour
	defaultLane   = 16
)

// GivePast gives node numbers to the past, for good: no process claims them any more, not even by [WithNode],
// and generator.OpenPast issues IDs for old rows with them, each of the row's own time.
//
// Only a number that was never used can be given. So GivePast refuses a number whose cell was ever written, and
// one that the fleet does not have. Unless p.Unused is set, it also refuses all numbers of a fleet with a
// floor, since another store may have used them, and of a store in which one was retired. It cannot see
// generators that work without this store. All past numbers of a store have one bucket and one lane.
//
// If GivePast fails, call it again: to give the same again is success. Only the options [WithLayout], of a
// store that has no fleet, [WithClock] and [WithTimeout] count. The error is an [*stores.OptionError], or one
// of [Claim].
func GivePast(ctx context.Context, store stores.Store, p Past, options ...Option) error {
	p.Retired = false
	return changePast(ctx, store, p, true, options)
}

// CheckPast reads the store, writes nothing, and returns the error that [GivePast] would return now, or
// [RetirePast] if p.Retired.
func CheckPast(ctx context.Context, store stores.Store, p Past, options ...Option) error {
	return changePast(ctx, store, p, false, options)
}

// changePast gives or retires numbers, or only looks whether it can be done.
func changePast(ctx context.Context, store stores.Store, p Past, write bool, options []Option) error {
	if p.Retired {
		return retirePast(ctx, store, p, write, options)
	}
	k, err := administer("GivePast", store, p.From, p.To, options)
	if err != nil {
		return err
	}
	version, err := k.readFleet(ctx)
	if err == nil && version == 0 {
		k.fleet = k.newFleet(cell.AllNodes(k.layout))
	}
	if err == nil {
		err = k.givePast(ctx, p, false)
	}
	if err == nil && write && version == 0 {
		err = k.checkFleet(ctx)
	}
	if err == nil && write {
		err = k.givePast(ctx, p, true)
	}
	return err
}

// givePast gives numbers of the fleet that is known to the past, or only looks whether they can be given: all or none.
func (k *keys) givePast(ctx context.Context, p Past, write bool) error {
	if err := k.checkRange("GivePast", p.From, p.To); err != nil {
		return err
	}
	bucket := cmp.Or(p.Bucket, k.traits.Bucket, defaultBucket)
	lanes, err := cell.NewLanes(k.layout, bucket, cmp.Or(p.Lane, min(defaultLane, int64(1)<<k.layout.SequenceBits)))
	if err != nil {
		return refuse("GivePast", "%w", err)
	}
	before, err := readPast(ctx, &k.calls)
	if err != nil {
		return err
	}
	for _, b := range before {
		if b.Bucket != lanes.Bucket || b.Lane != lanes.Width {
			return refuse("GivePast", "node number %d has buckets of %s and lanes of %d, and all past numbers of a store have the same: got %s and %d", b.From, b.Bucket, b.Lane, lanes.Bucket, lanes.Width)
		}
	}
	rewound := false
	if err := k.eachCell(ctx, k.fleet.Nodes, func(c grant.Cell) error {
		rewound = rewound || c.Record.Past == cell.Retired
		return nil
	}); err != nil {
		return err
	}
	for node := p.From; node <= p.To; node++ {
		if err := k.giveOne(ctx, node, lanes, rewound, p.Unused, write); err != nil {
			return err
		}
	}
	return nil
}

// giveOne gives one number, or only looks whether it can be given.
func (k *keys) giveOne(ctx context.Context, node int64, lanes cell.Lanes, rewound, unused, write bool) error {
	if err := k.checkInFleet("GivePast", node); err != nil {
		return err
	}
	return again(func() error {
		c, err := k.readCell(ctx, node)
		if err != nil || c.Record.Past == cell.Given {
			return err
		}
		drawn, err := k.calls.List(ctx, cell.LaneKey(node, 0), cell.LanesTo(node), 1) // its cell was deleted
		if err != nil {
			return err
		}
		r, err := grant.Give(c, grant.Fleet{Floor: k.fleet.Floor}, k.end(), rewound || len(drawn) > 0, unused, cell.Token(), k.spec)
		if err != nil {
			return k.cannotGive(ctx, node, err)
		}
		if !write {
			return nil
		}
		if err := k.define(ctx, node, lanes); err != nil { // (P2)
			return err
		}
		_, err = k.calls.Swap(ctx, cell.NodeKey(node), 0, k.encode(r))
		return err
	})
}

// define writes the definition of a number's lanes, unless it is there.
func (k *keys) define(ctx context.Context, node int64, lanes cell.Lanes) error {
	r := lanes.Cell()
	r.Writes, r.Write = 1, cell.Token()
	_, err := k.calls.Swap(ctx, cell.PastKey(node), 0, r.Encode())
	if !errors.Is(err, stores.ErrConflict) {
		return err
	}
	found, err := k.calls.Read(ctx, cell.PastKey(node))
	switch {
	case err != nil:
		return err
	case found.Version == 0: // a stale read
		return stores.ErrConflict
	}
	theirs, err := cell.DecodeLanes(found.Value)
	if err == nil && theirs != lanes {
		err = refuse("GivePast", "node number %d was to have buckets of %s and lanes of %d before: give it these", node, theirs.Bucket, theirs.Width)
	}
	return err
}

// cannotGive is the error of a number that cannot be given, with what can.
func (k *keys) cannotGive(ctx context.Context, node int64, why error) error {
	if !errors.Is(why, grant.ErrWritten) {
		return refuse("GivePast", "node number %d: %w: if no ID was ever issued with it, say so: --unused", node, why)
	}
	left, first := int64(0), int64(0)
	if err := k.eachCell(ctx, k.fleet.Nodes, func(c grant.Cell) error {
		if c.Version == 0 && !c.Damaged {
			first = cmp.Or(first, c.Node)
			left++
		}
		return nil
	}); err != nil {
		return err
	}
	if left == 0 {
		return refuse("GivePast", "node number %d: %w: so were all %d of this store: give numbers to the past when a fleet is created, 'tickflake lease fleet --past'", node, why, k.numbers())
	}
	return refuse("GivePast", "node number %d: %w: of the %d of this store %d were never used, such as %d", node, why, k.numbers(), left, first)
}

// RetirePast ends what [GivePast] began: no process issues IDs with these numbers any more, for old rows or of
// now. Call it when the store was restored from a backup, or failed over to a stale replica, before a process
// uses it: lanes that were drawn since the backup may be drawn again. Name all numbers that were ever given to
// the past, also those that the backup does not know. A process that has the numbers open goes on until it is
// closed.
//
// A number that was claimed is refused with an [*stores.OptionError]. A second call does no harm. Only
// [WithClock] and [WithTimeout] count; the other errors are those of GivePast. The fleet may have ended.
func RetirePast(ctx context.Context, store stores.Store, from, to int64, options ...Option) error {
	return changePast(ctx, store, Past{From: from, To: to, Retired: true}, true, options)
}

func retirePast(ctx context.Context, store stores.Store, p Past, write bool, options []Option) error {
	k, err := administerKnown(ctx, "RetirePast", store, p.From, p.To, options)
	for node := p.From; err == nil && node <= p.To; node++ {
		err = k.retire(ctx, node, false)
	}
	for node := p.From; err == nil && write && node <= p.To; node++ {
		err = k.retire(ctx, node, true)
	}
	return err
}

func (k *keys) retire(ctx context.Context, node int64, write bool) error {
	return again(func() error {
		c, err := k.readCell(ctx, node)
		if err != nil {
			return err
		}
		switch {
		case c.Version != 0 && c.Record.Past == "":
			return refuse("RetirePast", "node number %d was not given to the past: 'tickflake lease reserve' keeps processes from it", node)
		case !write, c.Record.Past == cell.Retired:
			return nil
		}
		r := grant.Retire(c.Record, k.end())
		r.Write, r.Last, r.Layout = cell.Token(), c.Record.Names(), k.spec
		_, err = k.calls.Swap(ctx, cell.NodeKey(node), c.Version, k.encode(r))
		return err
	})
}

// readPast returns the past numbers of a store, those in a row as one.
func readPast(ctx context.Context, calls *drive.Calls) (all []Past, err error) {
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
		p := Past{From: node, To: node, Bucket: lanes.Bucket, Lane: lanes.Width, Retired: r.Past == cell.Retired}
		i := len(all) - 1
		switch {
		case r.Past == "":
		case i >= 0 && all[i] == Past{From: all[i].From, To: node - 1, Bucket: p.Bucket, Lane: p.Lane, Retired: p.Retired}:
			all[i].To = node
		default:
			all = append(all, p)
		}
		return nil
	})
	return all, err
}

package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/internal/vmclock"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

var (
	// ErrNoPast is wrapped by the error of [OpenPast] for a store in which no node number was given to the past.
	ErrNoPast = errors.New("no node number was given to the past")

	// ErrPastFull is wrapped by the error of [Past.At] if all IDs of an instant are issued, or belong to other processes.
	ErrPastFull = errors.New("no ID of that time is left")

	// ErrNotPast is wrapped by the error of [Past.At] for an instant before the layout's epoch or after the clock.
	ErrNotPast = errors.New("no ID for that time")
)

// defaultPastMemory is how much memory a [Past] counts in if [WithPastMemory] says nothing.
const defaultPastMemory = 64 << 20

// WithPastUnit says how exact the instants are that [Past.At] is given. With [time.Second], rows of one second
// get the ticks of that second in turn; else they would crowd into its first tick. The default is the layout's
// tick, and less is the same. It is for [OpenPast].
func WithPastUnit(unit time.Duration) Option { return func(c *config) { c.past.unit = unit } }

// WithPastMemory bounds the memory of a [Past], in bytes, by default 64 MiB. It needs about 16 for each tick,
// or unit, of which it has issued IDs, and 1,024 for each bucket. Beyond the bound, it forgets the bucket that
// it began first. For the next row of that bucket it draws another lane: the rest of its earlier lanes is
// lost, and no ID comes twice. It is for [OpenPast].
func WithPastMemory(bytes int) Option { return func(c *config) { c.past.memory = bytes } }

// pastConfig is what the options for OpenPast alone have set, and 0 for what they have not.
type pastConfig struct {
	unit   time.Duration
	memory int
}

var errPastClosed = fmt.Errorf("old rows: %w", ErrClosed)

// bytesPerTick is what a tick takes in the map that counts it, about. A bucket takes as much as ticksPerBucket.
const (
	bytesPerTick   = 16
	ticksPerBucket = 64
)

// Past issues IDs for old rows: unique for ever, each of its row's own time. Make one with [OpenPast] and share it: its
// methods are safe for use by several goroutines at once. The zero Past is not usable.
type Past struct {
	store  stores.Store
	calls  drive.Calls
	layout snowflake.Layout
	clock  monoclock.Interface
	nodes  []int64 // the past numbers in use
	lanes  cell.Lanes
	ticks  int64 // of a bucket
	unit   int64 // in ticks
	most   int   // of counted
	page   *vmclock.Page

	turn drive.Turn // its owner alone draws lanes

	mu      sync.Mutex // guards the fields below
	buckets map[int64]*pastBucket
	order   []int64 // of buckets, the one begun first in front
	counted int     // ticks of all buckets, and ticksPerBucket for each
	mark    uint64  // the marker of page in the memory that drew all lanes
	copies  int     // so often the memory was copied
	closed  bool
	stats   PastStats
}

// pastBucket is a bucket that the process has drawn a lane of.
type pastBucket struct {
	lanes []lane
	used  map[uint32]uint32 // by the first tick of a unit, from that of the bucket on: slots of lanes, in their order
	from  *drawer           // for the owner of the turn
}

// PastStats counts what a [Past] has done.
type PastStats struct {
	Buckets uint64 // begun; one that was forgotten and begun again counts twice
	Lanes   uint64 // drawn
	IDs     uint64
}

// OpenPast opens the store at url, as [Open] does, and returns a [Past]. It issues IDs for old rows with the node numbers that
// 'tickflake lease past' or [lease.GivePast] has given to the past in this store:
//
//	old, err := generator.OpenPast(ctx, "ids", generator.WithPastUnit(time.Second))
//	id, err := old.At(ctx, row.CreatedAt)
//
// Any number of processes may do so at once, beside generators that issue the IDs of now. The fleet may have ended: then its
// processes use another store, and the IDs of old rows still come from this one.
//
// Of the options, [WithPastUnit], [WithPastMemory], [WithLogger] and [WithClock] count. The layout is that of the store; if
// [WithLayout] gives another, OpenPast fails. The error is a [*stores.OptionError], a [*lease.LayoutMismatchError], one of
// [stores.Open], or wraps [ErrNoPast], [lease.ErrNeverClaimed], [stores.ErrDamaged] or [lease.ErrStore].
func OpenPast(ctx context.Context, url string, opts ...Option) (*Past, error) {
	c, err := configure(opts)
	if err == nil {
		err = c.checkPast()
	}
	if err != nil {
		return nil, err
	}
	store, err := stores.Open(ctx, url, stores.WithLogger(c.log))
	if err != nil {
		return nil, err
	}
	p, err := openPast(ctx, store, &c)
	if err != nil {
		return nil, join(err, store.Close())
	}
	return p, nil
}

// checkPast refuses options that OpenPast has no use for.
func (c *config) checkPast() error {
	others := map[string]bool{"WithNode": c.pinned, "WithLease": c.leased, "WithLeaseOptions": len(c.leaseOptions) > 0, "WithFloor": c.after != nil, "WithWallWithin": c.within.Given}
	for option, given := range others {
		if given {
			return &stores.OptionError{Option: option, Err: errors.New("OpenPast claims no node number: leave the option out")}
		}
	}
	switch {
	case c.ownClock && drive.IsNil(c.clock):
		return &stores.OptionError{Option: "WithClock", Err: fmt.Errorf("clock %w: give one, such as monoclock.New()", drive.ErrNil)}
	case c.past.unit < 0:
		return &stores.OptionError{Option: "WithPastUnit", Err: fmt.Errorf("%s: want 0 or more", c.past.unit)}
	case c.past.memory < 0:
		return &stores.OptionError{Option: "WithPastMemory", Err: fmt.Errorf("%d bytes: want 0 or more", c.past.memory)}
	}
	return nil
}

func openPast(ctx context.Context, store stores.Store, c *config) (*Past, error) {
	fleet, err := lease.ReadFleet(ctx, store)
	if err != nil {
		return nil, err
	}
	if ours := c.layout.String(); c.ownLayout && ours != fleet.Layout.String() {
		return nil, &lease.LayoutMismatchError{Ours: c.layout, Theirs: fleet.Layout}
	}
	if !c.ownClock {
		c.clock = monoclock.New()
	}
	p := &Past{
		store: store, calls: drive.Calls{Store: store, Timeout: drive.DefaultTimeout}, layout: fleet.Layout, clock: c.clock, turn: drive.NewTurn(),
		most: cmp.Or(c.past.memory, defaultPastMemory) / bytesPerTick, unit: max(int64(c.past.unit/fleet.Layout.Tick), 1), buckets: map[int64]*pastBucket{},
	}
	for _, n := range fleet.Past {
		if n.Retired {
			continue
		}
		lanes, err := cell.NewLanes(p.layout, n.Bucket, n.Lane)
		if err == nil && len(p.nodes) > 0 && p.lanes != lanes { // two operators at once
			err = fmt.Errorf("node numbers %d and %d have other buckets or lanes: 'tickflake lease past --retire' one of them", p.nodes[0], n.From)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", stores.ErrDamaged, err)
		}
		for p.lanes = lanes; n.From <= n.To; n.From++ {
			p.nodes = append(p.nodes, n.From)
		}
	}
	if len(p.nodes) == 0 {
		return nil, fmt.Errorf("%w in this store, or all of them were retired: 'tickflake lease past --nodes N' gives some that were never used", ErrNoPast)
	}
	p.ticks = int64(p.lanes.Bucket / p.layout.Tick)
	if p.page, err = vmclock.Open("", c.log); err != nil {
		return nil, err
	}
	p.mark = p.page.Marker.Load()
	return p, nil
}

// spot is where the IDs of an instant are.
type spot struct {
	bucket int64
	key    uint32 // the first tick of its unit, in the bucket
	first  int64  // that tick
	ticks  int64  // of the unit, as far as they lie in the bucket
}

func (p *Past) spot(t time.Time) (spot, error) {
	now := p.clock.Now()
	switch {
	case t.Before(p.layout.Epoch):
		return spot{}, fmt.Errorf("%w: %s is before the epoch, %s: the epoch is chosen before the first start of a fleet, and must lie before the oldest row", ErrNotPast, t.UTC().Format(time.RFC3339Nano), p.layout.Epoch.Format(time.RFC3339Nano))
	case t.After(now), !t.Before(p.layout.End()):
		return spot{}, fmt.Errorf("%w: %s is after now, %s: IDs of now come from a generator", ErrNotPast, t.UTC().Format(time.RFC3339Nano), now.UTC().Format(time.RFC3339Nano))
	}
	// Units follow each other without a gap, and a unit in two buckets is cut in two: no tick is in two spots.
	tick := p.tickOf(t)
	begin := tick
	if p.unit > 1 {
		begin = p.tickOf(t.Truncate(time.Duration(p.unit) * p.layout.Tick))
		if tick >= begin+p.unit { // the epoch lies between two multiples of the tick
			begin += p.unit
		}
	}
	at := spot{bucket: tick / p.ticks}
	low := at.bucket * p.ticks
	at.first = max(begin, low)
	at.ticks = min(begin+p.unit, low+p.ticks, int64(1)<<p.layout.TimeBits) - at.first
	at.key = uint32(at.first - low)
	return at, nil
}

// time is the start of a tick.
func (p *Past) time(tick int64) time.Time {
	return p.layout.Epoch.Add(time.Duration(tick) * p.layout.Tick).UTC()
}

// tickOf is the tick of an instant, below 0 before the epoch.
func (p *Past) tickOf(t time.Time) int64 {
	d := t.Sub(p.layout.Epoch)
	n := int64(d / p.layout.Tick)
	if d < 0 && d%p.layout.Tick != 0 {
		n--
	}
	return n
}

// At returns an ID of the instant t, to within the layout's tick or the unit of [WithPastUnit]: no other call
// gets it, in any process, now or later. An ID that you do not use is gone.
//
// Most calls count in memory. The first call of the process in a bucket, and one that finds its lanes full,
// write to the store. If the store does not answer, At tries again until the deadline of ctx; without a
// deadline, it fails after [lease.DefaultTimeout] at most.
//
// The error wraps [ErrNotPast] for an instant before the epoch or after the clock, [ErrPastFull] if no ID is
// left, [ErrClosed], [lease.ErrStore], [stores.ErrConflict], [stores.ErrWentBack] or [stores.ErrDamaged].
func (p *Past) At(ctx context.Context, t time.Time) (snowflake.ID, error) {
	at, err := p.spot(t)
	if err != nil {
		return 0, err
	}
	for {
		tick, l, sequence, want, err := p.take(at)
		if err != nil {
			return 0, err
		}
		if want == 0 {
			return p.layout.Compose(p.time(tick), l.node, sequence)
		}
		again := func(err error) bool {
			_, bounded := ctx.Deadline()
			return errors.Is(err, stores.ErrConflict) && ctx.Err() == nil || bounded && stores.KindOf(err) == stores.Transient || bounded && stores.KindOf(err) != stores.Permanent && errors.Is(err, lease.ErrStore)
		}
		if err := pause.Retry(ctx, again, func() error { return p.draw(ctx, at, want) }); err != nil {
			return 0, fmt.Errorf("no ID for %s: %w", t.UTC().Format(time.RFC3339Nano), err)
		}
	}
}

// take takes a slot of a spot. want is how many lanes of its bucket are needed, if there are fewer.
func (p *Past) take(at spot) (tick int64, l lane, sequence int64, want int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.distrust(false)
	if p.closed {
		return 0, l, 0, 0, errPastClosed
	}
	b := p.buckets[at.bucket]
	if b == nil {
		return 0, l, 0, 1, nil
	}
	n, known := b.used[at.key]
	width := p.lanes.Width
	i := int64(n) / (at.ticks * width)
	switch {
	case n == math.MaxUint32: // never: that many IDs of one unit
		return 0, l, 0, 0, ErrPastFull
	case i >= int64(len(b.lanes)):
		return 0, l, 0, int(i) + 1, nil
	}
	b.used[at.key] = n + 1
	rest := int64(n) % (at.ticks * width)
	l, tick, sequence = b.lanes[i], at.first+rest%at.ticks, rest/at.ticks
	if !known {
		p.counted++
		p.forget()
	}
	if p.distrust(false) { // the copy and its original have taken the same
		return 0, l, 0, 1, nil
	}
	p.stats.IDs++
	return tick, l, l.first + sequence, 0, nil
}

// forget forgets the buckets that were begun first, until the others have room.
func (p *Past) forget() {
	for p.counted > p.most && len(p.order) > 0 {
		p.drop(p.order[0])
	}
}

// drop forgets the bucket in front.
func (p *Past) drop(bucket int64) {
	p.counted -= len(p.buckets[bucket].used) + ticksPerBucket
	delete(p.buckets, bucket)
	p.order = p.order[1:]
}

// distrust forgets all lanes if the program tells, or else the device, that this memory is a copy. The caller holds mu.
func (p *Past) distrust(told bool) bool {
	mark := p.page.Marker.Load()
	if mark == p.mark && !told {
		return false
	}
	p.mark, p.counted, p.order, p.copies = mark, 0, nil, p.copies+1
	clear(p.buckets)
	return true
}

// Restored tells p that the process's memory was restored or copied. Call it before the next ID: p leaves its
// lanes to the original, and draws others. As with [Generator.Restored], no call is needed if a VMClock was
// found.
func (p *Past) Restored() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.distrust(true)
}

// draw draws lanes of the bucket of a spot until the process has as many as want.
func (p *Past) draw(ctx context.Context, at spot, want int) error {
	if err := p.turn.Take(ctx); err != nil {
		return err
	}
	defer p.turn.Leave()
	p.mu.Lock()
	b, copies, closed := p.buckets[at.bucket], p.copies, p.closed
	p.mu.Unlock()
	var from *drawer
	switch {
	case closed: // while the call waited or tried again
		return errPastClosed
	case b == nil && want > 1: // forgotten meanwhile
		return nil
	case b == nil:
		from = &drawer{calls: &p.calls, lanes: p.lanes, bucket: at.bucket, nodes: p.nodes}
	case len(b.lanes) >= want: // another call was faster
		return nil
	default:
		from = b.from
	}
	l, err := from.draw(ctx)
	if errors.Is(err, ErrPastFull) {
		return p.full(at, b)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.distrust(false) || p.copies != copies || p.buckets[at.bucket] != b { // the original has drawn it as well, or the bucket was forgotten
		return nil
	}
	p.stats.Lanes++
	if b == nil {
		b = &pastBucket{used: map[uint32]uint32{}, from: from}
		p.buckets[at.bucket], p.order = b, append(p.order, at.bucket)
		p.stats.Buckets++
		p.counted += ticksPerBucket
	}
	b.lanes = append(b.lanes, l)
	return nil
}

// full is the error for a bucket without a lane. b has what this process has drawn of it, or is nil.
func (p *Past) full(at spot, b *pastBucket) error {
	begin := p.time(at.bucket * p.ticks)
	lanes, mine := int64(len(p.nodes))*p.lanes.Count, int64(0)
	if b != nil {
		mine = int64(len(b.lanes))
	}
	width := p.lanes.Width
	if mine == lanes {
		return fmt.Errorf("%w: the tick is full, all %d IDs of %d past node numbers are issued: give more numbers to the past, or more exact instants", ErrPastFull, at.ticks*width*lanes, len(p.nodes))
	}
	return fmt.Errorf("%w: all %d lanes of %d past node numbers in the bucket of %s from %s on are drawn, %d by this process, each of %d IDs of a tick: give more numbers to the past, or sort the rows, or use fewer processes",
		ErrPastFull, lanes, len(p.nodes), p.lanes.Bucket, begin.Format(time.RFC3339), mine, width)
}

// Stats returns what was counted so far.
func (p *Past) Stats() PastStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Layout returns the layout of the IDs, which is that of the store.
func (p *Past) Layout() snowflake.Layout { return p.layout }

// Close closes the store. The unused IDs of the lanes are gone. A second call does nothing and returns nil.
func (p *Past) Close() error {
	p.mu.Lock()
	was := p.closed
	p.closed = true
	clear(p.buckets)
	p.mu.Unlock()
	if was {
		return nil
	}
	return p.store.Close()
}

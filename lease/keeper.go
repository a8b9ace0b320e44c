package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/pause"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// Keeper holds a lease: it claims a node number in a [stores.Store], extends the grant
// long before it is used up, claims another number when another process took its number,
// and releases the number when it is closed. Make one with [Claim] and give it to the
// generator that issues the IDs; closing the generator closes the Keeper.
//
// A Keeper is safe for use by several goroutines at once. It owns one goroutine, which
// ends when the Keeper is closed. The first Close has one more, which ends with the release.
type Keeper struct {
	keys   // its fleet is that of the goroutine that has the turn
	window *window.Ticks
	random func() string // draws tokens and names of writes

	cancel context.CancelFunc // ends the goroutine
	ending drive.Ending       // releases the number

	// The goroutine that has the turn works on the lease, and it alone uses the fields from here to
	// the next group.
	turn drive.Turn

	machine grant.Machine
	locks   map[int64]func()
	closed  bool  // the lease was released, or the release failed
	lost    error // why there will be no other grant, or nil
	// suspicion is the last read that looked as if the store went back; it may have ended.
	suspicion error
	seen      map[int64]sighting
	bad       map[int64]bool // damaged cells that were logged
	warned    bool           // of a grant too far ahead
	drifted   bool           // the wall clock is far from the clock, as was logged
	lapsed    window.Range   // the grant whose end was logged, while it lasts

	due      time.Duration // elapsed time at which the next extension is due
	retry    time.Duration // elapsed time before which there is no call of the store
	failures int           // tries that have failed in a row
	paced    bool          // something was granted when the last try failed
	since    time.Time     // when the first of the failures in a row was
	kind     stores.Kind   // the kind of the last failure
	ignored  time.Duration // of the suspended time, as it was logged
	late     time.Duration // by which this process ran late in the present step, or 0

	// state guards the fields below, for callers that must not wait for the turn.
	state    sync.Mutex
	err      error
	stats    Stats        // what is counted
	used     window.Range // the grant of the window
	given    window.Range // the last grant of the window, also after it was revoked
	bound    bool
	restored bool   // nothing is granted until the owner of the turn has told the machine
	by       string // what has told last that the memory was restored
	mark     uint64 // the marker of page in the memory that all grants since were made to

	closing atomic.Bool // set by the first Close with state locked, so that nothing is granted after it; never reset
	apart   atomic.Bool // IDs may have been issued apart from the window; its owner sets it before the first of them
}

// Claim claims a node number, and returns the Keeper that holds it. ctx bounds the claim, not the Keeper.
//
// If no node number is free, that of [WithNode] is held, the store does not answer, or the clock reads a time before
// the layout's epoch and so is not set yet, Claim tries again until the deadline of ctx, and its error then also wraps
// that of ctx; without a deadline it fails at once. It also fails at once if the store refuses, or another error has
// the kind [stores.Permanent], such as that of a reserved number of WithNode.
//
// The error is a [*NoFreeNodeError] if all node numbers are held, a [*LayoutMismatchError] if the store's cells
// are for another layout, and an [*stores.OptionError] if an option is out of range or nil, or the number of
// WithNode is none of the store's. Else it wraps
//
//   - [ErrHeld]: the number of WithNode is held by another living process, or reserved,
//   - [ErrStore]: the store failed,
//   - [stores.ErrDamaged]: the fleet's cell, or that of the number of WithNode, is damaged,
//   - [ErrSkew]: the clock is far behind the fleet's, with [WithStrictFleetCheck],
//   - [ErrEndOfTime]: no node number has time left in the layout,
//   - [ErrMoved]: the fleet, or the number of WithNode, was moved to another store by [EndFleet],
//   - [snowflake.ErrEarly]: the clock reads a time before the epoch,
//   - [monoclock.ErrWall]: the wall clock was not set in time, for [WithWallWithin].
func Claim(ctx context.Context, store stores.Store, options ...Option) (*Keeper, error) {
	if err := checkStore("Claim", store); err != nil {
		return nil, err
	}
	k, err := newKeeper(ctx, store, options)
	if err != nil {
		return nil, err
	}
	if private := k.traits.Private; private != nil {
		if why := private(ctx); why != "" {
			k.log.Warn("lease: " + why)
		}
	}
	k.noteWall()
	if err := k.claimFirst(ctx); err != nil {
		return nil, err
	}
	if !seam.Polled(ctx, k.polled) {
		k.start()
	}
	return k, nil
}

func newKeeper(ctx context.Context, store stores.Store, options []Option) (*Keeper, error) {
	c, err := newKeys(ctx, store, options)
	if err != nil {
		return nil, err
	}
	k := &Keeper{
		keys: c, window: window.NewTicks(uint8(c.layout.SequenceBits), c.end()), random: cell.Token, cancel: func() {},
		turn: drive.NewTurn(), locks: map[int64]func(){}, seen: map[int64]sighting{}, bad: map[int64]bool{},
	}
	k.mark = c.page.Marker.Load()
	k.window.Watch(c.page.Marker)
	k.machine = grant.New(grant.Config{
		Owner: c.owner, Layout: c.spec, Window: c.window, End: c.end(), Pinned: c.node, Locker: c.locking(),
	}, k.random())
	return k, nil
}

// claimFirst claims a node number, and waits for one as long as ctx's deadline allows.
func (k *Keeper) claimFirst(ctx context.Context) error {
	var before error
	for failures := 1; ; failures++ {
		began := k.elapsed()
		err := k.tryClaim(ctx)
		if err == nil || !mayPass(err) {
			return err
		}
		if before != nil && pause.Ended(ctx) != nil { // the store may see the deadline before ctx does
			return inTime(before, ctx) // it says more than the error of the last, interrupted try
		}
		if _, ok := ctx.Deadline(); ctx.Err() == nil && !ok {
			return err
		}
		if before == nil && ctx.Err() == nil {
			k.log.Info("lease: waiting for a node number", kindAttr(err), "err", err)
		}
		before = err
		select {
		case <-k.after(k.claimAgain(began, failures)):
		case <-ctx.Done():
			return inTime(err, ctx)
		}
	}
}

// claimAgain is the time until the next try of a first claim.
func (k *Keeper) claimAgain(began time.Duration, failures int) time.Duration {
	if k.locking() {
		return k.pause()
	}
	now := k.elapsed()
	return grant.Next(began, now, grant.RetryClaim(k.period, failures, pick(k.random()))) - now
}

func (k *Keeper) tryClaim(ctx context.Context) error {
	if err := k.turn.Take(ctx); err != nil {
		return fmt.Errorf("an earlier call of the store has not ended: %w", err)
	}
	defer k.turn.Leave()
	if k.closing.Load() {
		return ErrClosed
	}
	err := k.work(ctx)
	if err != nil {
		k.setErr(err) // within the turn, or it would hide the success of a later step
	}
	return err
}

// mayPass reports whether waiting may help against err.
func mayPass(err error) bool {
	kind := stores.KindOf(err)
	return kind == stores.Transient || kind != stores.Permanent && (errors.Is(err, ErrStore) || errors.Is(err, stores.ErrWentBack))
}

// inTime adds to err that ctx has ended, unless it says so.
func inTime(err error, ctx context.Context) error {
	over := pause.Ended(ctx)
	if strings.Contains(err.Error(), over.Error()) {
		return drive.Wrap(err.Error(), over, err)
	}
	return fmt.Errorf("%w: %w", over, err)
}

// start starts the goroutine that keeps the lease.
func (k *Keeper) start() {
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	go func() {
		for late := time.Duration(0); ; {
			next := k.poll(ctx, late)
			due := k.elapsed() + next
			select {
			case <-k.after(next):
			case <-k.window.More():
			case <-ctx.Done():
				return
			}
			late = k.elapsed() - due
		}
	}()
}

// polled does one step of the work, for a [seam.Poller].
func (k *Keeper) polled(ctx context.Context) (next time.Duration, err error) {
	next = k.poll(ctx, 0)
	return next, k.Err()
}

// poll does one step of the Keeper's work, for a goroutine that was woken so late: it extends the grant if that is due,
// or claims another node number if it holds none. It returns the time until the next step is due, unless IDs run ahead of
// the clock meanwhile. After an operation of the store has failed it makes at most one more.
func (k *Keeper) poll(ctx context.Context, late time.Duration) (next time.Duration) {
	if k.turn.Take(ctx) != nil {
		return k.pause()
	}
	defer k.turn.Leave()
	k.late = 0
	k.ranLate(late)
	switch {
	case k.closing.Load():
		return k.pause()
	case k.lost != nil:
		k.noteEnd(nil, 0, 0)
		return k.pause()
	}
	k.distrust(false)
	k.noteSlept()
	k.noteDrift()
	k.publish() // time may have passed
	if now := k.elapsed(); now < k.retry {
		if !k.locking() { // the grant may have ended early, by a step of the clock
			pause, _ := k.pauseBetween(0)
			k.retry = min(k.retry, now+pause)
		}
		return k.retry - now
	}
	began, from := k.elapsed(), k.tick()
	var err error
	if !k.rests() {
		err = k.work(ctx)
	}
	if ctx.Err() != nil || k.closing.Load() { // the store is not to blame
		return k.pause()
	}
	if e, ok := errors.AsType[*drive.CallError](err); ok {
		e.Late = k.late
	}
	k.noteEnd(err, k.elapsed()-began, k.between(from, k.tick()))
	if err != nil {
		return k.failed(err, began)
	}
	return max(k.dueIn(), time.Millisecond)
}

// rests reports whether the machine has nothing to do now: for most polls, no name of a write is drawn.
func (k *Keeper) rests() bool {
	due := k.dueIn() <= 0
	k.state.Lock()
	defer k.state.Unlock()
	return !due && !k.restored && k.machine.Rests()
}

// dueIn is the time until the next write of the lease.
func (k *Keeper) dueIn() time.Duration {
	h := k.machine.Held()
	if h.Version == 0 {
		return k.pause()
	}
	in, front, used := k.due-k.elapsed(), k.front(), k.granted()
	if k.machine.Grant() != used { // change over to the new grant in time
		in = min(in, max(k.between(front+1, min(h.Floor, used.To)), time.Millisecond))
	}
	if h.Limit < k.end() {
		in = min(in, k.between(front, grant.ExtendAt(h.Limit, k.config.window)))
		if k.window.Wanted() >= h.Limit {
			in = 0
		}
	}
	return in
}

// front is the first tick that is still needed: the clock's, or that of the next
// slot if it is ahead of the clock.
func (k *Keeper) front() uint64 { return max(k.tick(), k.window.Used()) }

// granted is the last grant of the window.
func (k *Keeper) granted() window.Range {
	k.state.Lock()
	defer k.state.Unlock()
	return k.used
}

// publish puts the grant of the held cell into the window. A grant of another node number
// waits until the clock reaches its floor, or the present grant has no time left.
func (k *Keeper) publish() {
	now, soon := k.machine.Grant(), k.front()+1 // a tick early, or a call could come between
	k.state.Lock()
	defer k.state.Unlock()
	if now.To == 0 || k.restored || k.closing.Load() || now == k.used { // a sealed window takes no grant
		return
	}
	if !now.Extends(k.used) && k.bound && soon < now.From && soon < k.used.To {
		return
	}
	k.give(now)
}

// give puts a grant into the window. The caller holds state.
func (k *Keeper) give(r window.Range) {
	k.used, k.given = r, r
	// The issuer asks for more when half of the window is left; usually the grant was
	// extended before that.
	k.window.Grant(r, r.To-min(r.To, k.config.window/2))
}

// revoke takes the grant back: no slot is taken until the next one.
func (k *Keeper) revoke() {
	k.state.Lock()
	defer k.state.Unlock()
	k.window.Revoke()
	k.used.From, k.used.To = 0, 0
}

// Layout returns the layout of the IDs that the lease is for.
func (k *Keeper) Layout() snowflake.Layout { return k.layout }

// Clock returns the clock of the lease.
func (k *Keeper) Clock() monoclock.Interface { return k.clock }

// Node returns the node number that IDs are issued with. It may change.
func (k *Keeper) Node() int64 { return k.granted().Node }

// Granted returns the time that IDs may be issued for: from floor up to, but not
// including, limit. The two are equal if nothing is granted.
func (k *Keeper) Granted() (floor, limit time.Time) {
	g := k.granted()
	return k.time(g.From), k.time(g.To)
}

// IssueApart tells the Keeper that IDs of times before until are issued with its grant and without a generator of this
// library, so that nobody knows the last one: from now on, Close leaves the limit where it is, and the next grant of the
// number begins there. Call it before the first of these IDs. If until is beyond the limit, the grant is extended to it
// as soon as the store answers; [Keeper.Granted] shows that. If that fails, call again. The zero until says that no such
// ID was issued after all. It does not wait.
func (k *Keeper) IssueApart(until time.Time) {
	k.apart.Store(!until.IsZero())
	if limit := k.limitAt(until); limit > k.granted().To {
		k.window.Want(limit - 1)
		k.window.Ask()
	}
}

// Err returns why the last extension that was due failed, or nil. It is an error of [Claim];
// or it wraps [ErrHeld] and [ErrLost] if the node number of [WithNode] was taken,
// [stores.ErrWentBack], or [ErrClosed]. Unless the store went back, the rest of the
// grant, up to the limit of [Keeper.Granted], can still be used.
func (k *Keeper) Err() error {
	k.state.Lock()
	defer k.state.Unlock()
	return k.err
}

func init() {
	window.OfKeeper = func(keeper any) (*window.Ticks, error) { return keeper.(*Keeper).bind() }
}

func (k *Keeper) bind() (*window.Ticks, error) {
	k.state.Lock()
	defer k.state.Unlock()
	switch {
	case k.closing.Load():
		return nil, ErrClosed
	case k.bound:
		return nil, errBound
	}
	k.bound = true
	return k.window, nil
}

package lease

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Keeper holds a lease: it claims a node number in a [Store], extends the grant
// long before it is used up, claims another number when the one it holds was taken,
// and releases it in the end. Make one with [Claim] and give it to the generator
// that is to issue IDs under it; closing that closes the Keeper.
//
// It is a [generator.Lease], whose methods are for the generator. The rest is safe for
// use by several goroutines at once. A Keeper owns one goroutine, which ends with
// it, unless it was made [WithPolling].
type Keeper struct {
	config
	random func() string // draws tokens and names of writes
	rng    *rand.Rand    // draws among free cells

	// The goroutine that extends, if there is one.
	need     chan struct{} // capacity 1: asks for a look ahead of time
	cancel   context.CancelFunc
	finished chan struct{} // closed when it has ended; nil without

	counters counters

	mu sync.Mutex // of what follows: held for a whole round, so that there is one at a time

	token  string
	holder generator.Holder // nil until a generator is bound
	sealed bool             // to be closed: no generator may be bound any longer
	closed bool

	held *holding // the cell that is ours in the store, or nil
	// used is the grant that the generator issues under. It is held's, but for the
	// time between losing one cell and going over to the next.
	used  generator.Grant
	ended generator.Grant // of which it was said that it ended

	tries map[string]uint64  // the floors of claims of unknown outcome, by their writes
	seen  map[int64]sighting // cells of others
	doubt doubt

	due      time.Duration // elapsed time from which on to write again
	retry    time.Duration // elapsed time before which the store is left alone
	failures int           // in a row
	since    time.Time     // of the first of them

	state sync.Mutex // of what follows: for those who must not wait for a round
	err   error
	shown generator.Grant
}

// holding is a cell that is ours.
type holding struct {
	cell  Cell
	floor uint64 // of the grant with which we claimed it
	limit uint64 // what the store is known to have
	// writes are those of unknown outcome since cell was seen. All are conditional
	// on its version, so that at most one can ever land.
	writes map[string]bool
	unlock func() // or nil
}

// sighting says since when a cell has had its version, in elapsed time.
type sighting struct {
	version uint64
	since   time.Duration
}

// Claim claims a node number, and returns the Keeper that holds it. ctx bounds the
// claim, not the Keeper. If no node number is free, or the store does not answer,
// Claim fails at once, or, if ctx has a deadline, tries again until then: the error
// then wraps that of ctx as well.
//
// The error is
//
//   - [*NoFreeNodeError]: all node numbers are held,
//   - [*HeldError]: that of [WithNode] is held by another living process,
//   - [*StoreError]: the store failed,
//   - [*LayoutMismatchError]: the store's cells are not this fleet's,
//   - [*RecordError], or an error of the store that wraps [ErrDamaged]: a cell is
//     damaged,
//   - [*SkewError]: the clock is far from the fleet's, and [WithFleetCheck] is strict,
//   - [*EndOfTimeError]: no node number has time left in the layout,
//   - [*OptionError]: an option is out of range or nil.
func Claim(ctx context.Context, store Store, options ...Option) (*Keeper, error) {
	if err := checkArguments("Claim", ctx, store); err != nil {
		return nil, err
	}
	k, err := newKeeper(store, options)
	if err != nil {
		return nil, err
	}
	if err := k.claimFirst(ctx); err != nil {
		return nil, err
	}
	if !k.polling {
		k.start()
	}
	return k, nil
}

func newKeeper(store Store, options []Option) (*Keeper, error) {
	c, err := configure(store, options)
	if err != nil {
		return nil, err
	}
	return &Keeper{
		config: c, random: randomToken, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), token: randomToken(),
		need: make(chan struct{}, 1), cancel: func() {},
		tries: map[string]uint64{}, seen: map[int64]sighting{},
	}, nil
}

// claimFirst claims a node number, and waits for one as long as ctx's deadline
// allows.
func (k *Keeper) claimFirst(ctx context.Context) error {
	var before error
	for {
		k.mu.Lock()
		err := k.claim(ctx)
		k.mu.Unlock()
		if err == nil || !k.mayPass(err) {
			return err
		}
		if before != nil && ctx.Err() != nil {
			return ended(before, ctx) // which says more than that the last try was cut off
		}
		before = err
		if _, ok := ctx.Deadline(); !ok && ctx.Err() == nil {
			return err
		}
		var store *StoreError
		switch {
		case ctx.Err() != nil: // it is not tried again
		case errors.As(err, &store) && !errors.Is(err, ErrConflict):
			k.log.Warn("lease: store does not answer, trying on", "err", err)
		default:
			k.log.Info("lease: waiting for a node number", "err", err)
		}
		select {
		case <-k.after(k.pause()):
		case <-ctx.Done():
			return ended(err, ctx)
		}
	}
}

// start starts the goroutine that keeps the lease.
func (k *Keeper) start() {
	ctx, cancel := context.WithCancel(context.Background())
	k.cancel, k.finished = cancel, make(chan struct{})
	go func() {
		defer close(k.finished)
		for {
			next := k.Poll(ctx)
			select {
			case <-k.after(next):
			case <-k.need:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// Poll does what is due: it extends the grant, or claims another node number, or
// nothing. It returns how long nothing will be due, unless IDs run ahead of the
// clock meanwhile. A Keeper does so by itself, unless it was made [WithPolling]. A ctx
// that is nil counts as [context.Background].
func (k *Keeper) Poll(ctx context.Context) (next time.Duration) {
	if ctx == nil {
		ctx = context.Background()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return k.pause()
	}
	k.publish() // time may have passed
	if now := k.elapsed(); now < k.retry {
		return k.retry - now
	}
	var err error
	switch {
	case k.held == nil && k.pinned(): // lost for good
	case k.held == nil:
		err = k.claim(ctx)
	case k.dueIn() <= 0:
		err = k.extend(ctx)
	}
	k.publish()
	if err == nil && k.held != nil && k.dueIn() > 0 {
		k.settle(ctx)
	}
	if ctx.Err() != nil { // the store is not to blame
		return k.pause()
	}
	k.noteEnd(err)
	if err != nil {
		return k.failed(err)
	}
	return max(k.dueIn(), time.Millisecond)
}

// dueIn is how long the lease need not be written.
func (k *Keeper) dueIn() time.Duration {
	if k.held == nil {
		return k.pause()
	}
	in, front := k.due-k.elapsed(), k.front()
	if k.grant() != k.used { // go over to it in time
		in = min(in, max(k.span(front+1, min(k.held.floor, k.used.Limit)), time.Millisecond))
	}
	if limit := k.held.limit; limit < k.maxLimit() {
		in = min(in, k.span(front, limit-min(limit, k.window/3*2)))
	}
	return in
}

// front is the tick from which on time is needed: the clock's, or that of the next
// ID if it is ahead of it.
func (k *Keeper) front() uint64 {
	now := k.tick()
	if k.holder != nil {
		return max(now, k.holder.Tick())
	}
	return now
}

// publish gives the generator what is held. A grant of another node number is held
// back as long as the clock has not come to its floor, and there is time left in
// the one that is used.
func (k *Keeper) publish() {
	if k.held == nil {
		return
	}
	grant := k.grant()
	soon := k.front() + 1 // a tick early, or a call could come between
	follows := grant.Node == k.used.Node && grant.Floor <= k.used.Limit
	if !follows && k.holder != nil && soon < grant.Floor && soon < k.used.Limit {
		return
	}
	if grant != k.used {
		k.used = grant
		if k.holder != nil {
			k.holder.Grant(grant)
		}
		k.show(grant)
	}
}

// grant is the present grant. The generator asks for more when half of the window
// is left; in the ordinary course it was extended before that.
func (k *Keeper) grant() generator.Grant {
	h := k.held
	return generator.Grant{Node: h.cell.Node, Floor: h.floor, Limit: h.limit, Renew: h.limit - min(h.limit, k.window/2)}
}

func (k *Keeper) show(grant generator.Grant) {
	k.state.Lock()
	defer k.state.Unlock()
	k.shown = grant
}

// failed notes a failure, and returns when to try again.
func (k *Keeper) failed(err error) time.Duration {
	k.setErr(err)
	if k.failures++; k.failures == 1 {
		k.since = k.clock.Now()
		k.log.Warn("lease: not extended yet", "node", k.used.Node, "good until", k.time(k.used.Limit), "err", err)
	}
	pause := k.pause()
	if k.failures < 10 {
		pause = min(pause, 20*time.Millisecond<<k.failures)
	}
	k.retry = k.elapsed() + pause
	return pause
}

// noteEnd says once that nothing is left of the grant: calls fail from now on.
func (k *Keeper) noteEnd(err error) {
	if k.ended == k.used || k.tick() < k.used.Limit {
		return
	}
	k.ended = k.used
	k.log.Error("lease: grant ended", "node", k.used.Node, "at", k.time(k.used.Limit), "err", cmp.Or(err, k.Err()))
}

// recovered notes that the store has answered.
func (k *Keeper) recovered() {
	k.setErr(nil)
	if k.failures > 0 {
		k.log.Info("lease: recovered", "after", k.clock.Now().Sub(k.since), "failures", k.failures)
	}
	k.failures, k.retry, k.since = 0, 0, time.Time{}
}

func (k *Keeper) setErr(err error) {
	k.state.Lock()
	defer k.state.Unlock()
	k.err = err
}

// pause is how long to leave the store alone when there is something to wait for.
func (k *Keeper) pause() time.Duration {
	return min(max(k.span(0, k.window)/12, time.Millisecond), time.Second)
}

// Layout returns the layout of the IDs that the lease is for.
func (k *Keeper) Layout() snowflake.Layout { return k.layout }

// Clock returns the clock that the lease goes by.
func (k *Keeper) Clock() generator.Clock { return k.clock }

// Node returns the node number that IDs are issued with. It may change.
func (k *Keeper) Node() int64 {
	k.state.Lock()
	defer k.state.Unlock()
	return k.shown.Node
}

// Granted returns the time that IDs may be issued for: from floor up to, but not
// including, limit.
func (k *Keeper) Granted() (floor, limit time.Time) {
	k.state.Lock()
	defer k.state.Unlock()
	return k.time(k.shown.Floor), k.time(k.shown.Limit)
}

// Err returns why the grant was not extended when that was due last, or nil: the last
// error of the store, or a [*HeldError] if the node number of [WithNode] was taken, or
// [ErrClosed]. What was granted before, up to the limit that [Keeper.Granted] tells, can
// be used up all the same.
func (k *Keeper) Err() error {
	k.state.Lock()
	defer k.state.Unlock()
	return k.err
}

// Bind is for [generator.New].
func (k *Keeper) Bind(h generator.Holder) (generator.Grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed || k.sealed:
		return generator.Grant{}, ErrClosed
	case k.holder != nil:
		return generator.Grant{}, ErrBound
	case k.held != nil:
		k.used = k.grant()
	}
	k.holder = h
	return k.used, nil
}

// Need is for the generator: it has the grant extended ahead of time.
func (k *Keeper) Need() {
	if k.polling {
		k.Poll(context.Background())
		return
	}
	select {
	case k.need <- struct{}{}:
	default: // the keeper will look anyway
	}
}

package lease

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/stores"
)

// work runs rounds until there is nothing to do now. The caller has the turn.
func (k *Keeper) work(ctx context.Context) error {
	if k.lost != nil {
		return k.lost
	}
	defer k.endProbe()
	var unknown error // the last write has an unknown outcome: read before the next write
	for range drive.InARow {
		if k.closing.Load() && !k.closed {
			return ErrClosed
		}
		k.forget()
		state := k.stateOf()
		read, err := k.read(ctx, &state)
		if err != nil {
			if unknown != nil {
				return unknown
			}
			return err
		}
		d := k.decide(state, read)
		if unknown != nil && d.Kind.Writes() {
			return unknown // the write has not landed so far
		}
		again, err := k.carryOut(ctx, d)
		k.publish()
		switch {
		case err != nil && again:
			unknown = err
		case err != nil || !again:
			return err
		default:
			unknown = nil
		}
	}
	return k.busy()
}

func (k *Keeper) busy() error {
	return drive.Busy(fmt.Sprintf("%d writes in a row met those of other processes: many claim at once: try again", drive.InARow))
}

// stateOf returns the state that the protocol decides by.
func (k *Keeper) stateOf() protocol.State {
	name, used := k.random(), k.granted()
	s := protocol.State{
		Token: k.token, Owner: k.owner, Layout: k.spec, Window: k.config.window, End: k.end(),
		Node: k.node, Locker: k.locker != nil,
		Name: name, Pick: pick(name),
		Due: k.held != nil && k.dueIn() <= 0, Closing: k.closed,
		Issued: k.held != nil && used.Node == k.held.Node && used.From == k.held.Floor && used.To > 0,
		Held:   k.held, Claims: k.claims, Raise: k.raise, Least: k.least,
	}
	k.look(&s)
	return s
}

// look reads the clock and how far the window is used: calls of the store take time.
func (k *Keeper) look(s *protocol.State) { s.Now, s.Used = k.tick(), k.window.Used() }

// pick derives a random number from a random name.
func pick(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// read reads the cells that the round needs.
func (k *Keeper) read(ctx context.Context, s *protocol.State) (protocol.Read, error) {
	switch {
	case s.Raise != nil:
		return k.readHeld(ctx, s, s.Raise.Node)
	case s.Held != nil && k.doubt:
		return k.readHeld(ctx, s, s.Held.Node)
	case s.Held != nil:
		return protocol.Read{}, nil
	case s.Closing:
		landed, _, err := k.readClaimed(ctx)
		return protocol.Read{Claimed: landed}, err
	}
	return k.readFree(ctx, s)
}

func (k *Keeper) readHeld(ctx context.Context, s *protocol.State, node int64) (protocol.Read, error) {
	cell, err := k.readCell(ctx, node)
	k.look(s)
	if err != nil {
		return protocol.Read{}, err
	}
	if cell.Damaged && k.pinned() {
		return protocol.Read{}, k.bad[node]
	}
	return protocol.Read{Held: &cell}, nil
}

// carryOut carries out a decision. again asks for another round at once; an error together
// with again is that of a write of unknown outcome.
func (k *Keeper) carryOut(ctx context.Context, d protocol.Decision) (again bool, err error) {
	switch d.Kind {
	case protocol.Adopt:
		return k.adopt(ctx, d)
	case protocol.Extend:
		return k.extend(ctx, d)
	case protocol.Claim:
		return k.claim(ctx, d)
	case protocol.Release:
		return k.release(ctx, d)
	case protocol.Released:
		k.released(d)
		return false, nil
	case protocol.Lift:
		return k.lift(ctx, d)
	case protocol.Lifted:
		return k.lifted()
	case protocol.Lost:
		return k.lose(d)
	case protocol.WentBack:
		return k.wentBack(d)
	case protocol.Full:
		return false, k.full()
	case protocol.EndOfTime:
		return false, k.endOfTime()
	}
	return false, nil
}

// adopt notes that a write of unknown outcome has landed.
func (k *Keeper) adopt(ctx context.Context, d protocol.Decision) (again bool, err error) {
	if k.held != nil {
		k.extended(d.Held)
		return k.closed, nil
	}
	unlock, err := k.lock(ctx, d.Node)
	if errors.Is(err, stores.ErrLocked) { // another process is claiming it now
		k.claims = slices.DeleteFunc(k.claims, func(p protocol.Pending) bool { return p.Node == d.Node })
		return true, nil
	}
	if err != nil {
		return false, err
	}
	k.hold(d.Held, unlock)
	return k.closed, nil
}

func (k *Keeper) extend(ctx context.Context, d protocol.Decision) (again bool, err error) {
	version, err := k.swap(ctx, d)
	switch {
	case err == nil:
		d.Held.Version = version
		k.extended(d.Held)
		return false, nil
	case errors.Is(err, stores.ErrConflict), errors.Is(err, stores.ErrDamaged):
		err = nil // the cell tells more
	}
	// After a conflict as well: a driver may have sent the extension twice.
	k.doubt = true
	k.held.Pending = remember(k.held.Pending, d.Record.Write, protocol.MaxPending)
	return true, err
}

// extended notes that the cell has our limit.
func (k *Keeper) extended(h protocol.Held) {
	k.held, k.doubt = &h, false
	k.most = max(k.most, h.Limit)
	k.recovered()
	k.counters.extensions.Add(1)
	k.log.Debug("lease: extended", "node", h.Node, "until", k.time(h.Limit))
}

func (k *Keeper) claim(ctx context.Context, d protocol.Decision) (again bool, err error) {
	version, err := k.swap(ctx, d)
	unlock := k.probe.giveLock()
	switch {
	case err == nil:
		d.Held.Version = version
		k.hold(d.Held, unlock)
		return false, nil
	case errors.Is(err, stores.ErrConflict):
		k.probe.taken(d.Node, err)
	case errors.Is(err, stores.ErrDamaged):
		k.damaged(d.Node, err)
		k.probe.taken(d.Node, err)
	default:
		p := protocol.Pending{Node: d.Node, Version: d.Version, Name: d.Record.Write, Floor: d.Held.Floor}
		k.claims = remember(k.claims, p, maxClaims)
		unlock()
		return true, err
	}
	unlock()
	return true, nil
}

// maxClaims is how many claims of unknown outcome are remembered. The next claim reads
// each of them again, and if there are as many, takes one of their numbers.
const maxClaims = 8

// remember appends to list, and drops the oldest element if there are more than most.
func remember[T any](list []T, x T, most int) []T {
	if len(list) >= most {
		list = list[1:]
	}
	return append(slices.Clip(list), x)
}

// hold notes that a cell is ours.
func (k *Keeper) hold(h protocol.Held, unlock func()) {
	k.held, k.doubt, k.unlock = &h, false, unlock
	k.claims = nil
	clear(k.seen)
	k.most = max(k.most, h.Limit)
	k.recovered()
	if k.locker == nil { // others may have claimed at the same time
		k.due += protocol.Spread(k.third(), pick(k.random())) - k.third()
	}
	k.counters.claims.Add(1)
	k.log.Info("lease: claimed", "node", h.Node, "from", k.time(h.Floor), "until", k.time(h.Limit))
}

func (k *Keeper) release(ctx context.Context, d protocol.Decision) (again bool, err error) {
	_, err = k.swap(ctx, d)
	switch {
	case err == nil:
		k.released(d)
	case errors.Is(err, stores.ErrConflict):
		// An extension of unknown outcome has landed, or the cell was taken, or a driver has
		// sent the release twice: then another process may have claimed from there on already.
		k.doubt = true
		k.held.Pending = remember(k.held.Pending, d.Record.Write, protocol.MaxPending)
		k.held.Limit = d.Record.Limit
		return true, nil
	}
	return false, err
}

func (k *Keeper) released(d protocol.Decision) {
	k.held = nil
	k.counters.releases.Add(1)
	k.log.Info("lease: released", "node", d.Node, "from", k.time(d.Record.Limit))
}

// lose notes that another process has taken the cell. The next round claims another
// number, unless this one was pinned.
func (k *Keeper) lose(d protocol.Decision) (again bool, err error) {
	limit := k.held.Limit
	k.held, k.doubt = nil, false
	k.unlock()
	if k.closed {
		return false, nil // the cell is not ours, so there is no release
	}
	k.counters.conflicts.Add(1)
	by := "another process took it"
	switch {
	case k.bad[d.Node] != nil && d.Record.Write == "":
		by = "its cell is damaged"
	case d.Record.Holder == k.token:
		by = "a copy of this process's memory wrote to it: a snapshot was restored beside its original"
		k.token = k.random()
	case d.Record.Reserved:
		by = "an operator reserved it, or moved the fleet to another store"
	case d.Record.Holder == "":
		by = "another process took and released it, or an operator released it"
	}
	attrs := []any{"node", d.Node, "ours until", k.time(limit)}
	if d.Record.Owner != "" {
		attrs = append(attrs, "holder", d.Record.Owner)
	}
	k.log.Warn("lease: lost, "+by, attrs...)
	if k.pinned() {
		k.lost = heldError(d.Node, d.Record.Owner, ErrLost, stores.ErrConflict)
		if d.Record.Reserved {
			k.lost = drive.Wrap(fmt.Sprintf("node number %d is %v: %s: start this process again", d.Node, ErrLost, by), ErrHeld, ErrLost, stores.ErrConflict)
		}
		return false, k.lost
	}
	return true, nil
}

// wentBack notes that the store has lost an acknowledged write. No ID is issued any more
// from the grant, since a process that started later may have been granted it too.
func (k *Keeper) wentBack(d protocol.Decision) (again bool, err error) {
	h := k.held
	k.revoke()
	k.held, k.doubt, k.claims = nil, false, nil
	k.raise = &protocol.Raise{Node: d.Node, Limit: h.Limit}
	k.least = max(k.most, h.Limit)
	k.counters.wentBack.Add(1)
	found := "its cell is gone"
	switch {
	case d.Record.Write == "":
	case d.Record.Limit >= h.Limit:
		found = fmt.Sprintf("another process was granted the time from %s (tick %d)", k.time(d.Record.Floor).Format(timeFormat), d.Record.Floor)
	default:
		found = fmt.Sprintf("its limit is %s (tick %d)", k.time(d.Record.Limit).Format(timeFormat), d.Record.Limit)
	}
	err = fmt.Errorf("%w: node number %d was granted to this process up to %s (tick %d), and %s: it was restored from a backup, or failed over to a replica that was behind. The lost time may have been granted twice; look for duplicate IDs from before that limit",
		stores.ErrWentBack, h.Node, k.time(h.Limit).Format(timeFormat), h.Limit, found)
	k.log.Error("lease: "+err.Error(), "node", h.Node, kindAttr(err))
	k.failures, k.since, k.kind = k.failures+1, k.clock.Now(), stores.Loss // this failure is logged
	if k.closed {
		return true, nil // the next round raises the cell, without a holder
	}
	return false, err
}

// lift raises the limit of a cell of a store that went back.
func (k *Keeper) lift(ctx context.Context, d protocol.Decision) (again bool, err error) {
	_, err = k.swap(ctx, d)
	switch {
	case errors.Is(err, stores.ErrConflict):
		return true, nil
	case err == nil, errors.Is(err, stores.ErrDamaged): // no process claims a damaged cell
		return k.lifted()
	}
	return false, err
}

func (k *Keeper) lifted() (again bool, err error) {
	k.raise = nil
	k.unlock()
	return true, nil
}

// full is the error of a claim that found no free number.
func (k *Keeper) full() error {
	p := k.probe
	if k.pinned() {
		if len(p.cells) == 1 && p.cells[0].Record.Reserved && !p.cells[0].Taken {
			return reservedError(k.node, k.time(p.cells[0].Record.Limit).Format(timeFormat))
		}
		owner := ""
		if errors.Is(p.why, stores.ErrLocked) && len(p.cells) == 1 {
			owner = p.cells[0].Record.Owner
		}
		return heldError(k.node, owner, p.why)
	}
	e := &NoFreeNodeError{Held: p.others, Nodes: k.nodes()}
	if p.soonest > 0 {
		e.Soonest = k.time(p.soonest)
	}
	return e
}

func (k *Keeper) endOfTime() error {
	return fmt.Errorf("%w: it ends at %s: set the clock right, or move to another layout: its IDs may repeat those of this one, so choose one with larger IDs, or use a new table", ErrEndOfTime, k.layout.End().Format(time.RFC3339))
}

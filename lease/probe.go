package lease

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/stores"
)

// probe has the cells that a claim has read so far.
type probe struct {
	search  protocol.Search
	cells   []protocol.Cell
	others  int64  // numbers that are held, reserved or damaged
	soonest uint64 // the first tick at which one of those held may be free, or 0
	why     error  // why the last number was not to be had

	locked int64 // the number that is locked, or -1
	unlock func()
}

// readFree reads the cells that a claim needs: claims of unknown outcome, the layout, and
// node numbers until it can claim one of them.
func (k *Keeper) readFree(ctx context.Context, s *protocol.State) (protocol.Read, error) {
	landed, waiting, err := k.readClaimed(ctx)
	if err != nil || landed != nil {
		return protocol.Read{Claimed: landed}, err
	}
	if k.probe == nil {
		if err := k.startProbe(ctx, s); err != nil {
			return protocol.Read{}, err
		}
	}
	p := k.probe
	if len(waiting) >= maxClaims && k.locker == nil {
		// A server that hangs may keep a connection for each number that was tried. So it gets
		// no further number, but one of those again.
		k.look(s)
		if _, rank := s.Choose(waiting); rank != protocol.None {
			return protocol.Read{Cells: waiting, Others: int(p.others)}, nil
		}
	}
	for {
		k.look(s)
		best, rank := s.Choose(p.cells)
		switch {
		case !p.search.Settled(rank):
			err = k.readBlock(ctx, s, p)
		case rank == protocol.None || k.locker == nil || p.locked == best.Node:
			return protocol.Read{Cells: p.cells, Others: int(p.others)}, nil
		default:
			err = k.lockCandidate(ctx, p, best.Node)
		}
		if err != nil {
			p.giveLock()()
			return protocol.Read{}, err
		}
	}
}

// readClaimed reads the cells of claims of unknown outcome, and forgets those that can no
// longer land. It returns the cell of one that has landed, or none, and else those of claims
// that may still land.
func (k *Keeper) readClaimed(ctx context.Context) (landed, waiting []protocol.Cell, err error) {
	for _, p := range slices.Clone(k.claims) {
		cell, err := k.readCell(ctx, p.Node)
		if err != nil {
			return nil, nil, err
		}
		if cell.Version != 0 && cell.Record.Write == p.Name {
			return []protocol.Cell{cell}, nil, nil
		}
		if cell.Version != p.Version {
			k.claims = slices.DeleteFunc(k.claims, func(o protocol.Pending) bool { return o == p })
			continue
		}
		cell.Still = k.still(cell)
		waiting = append(waiting, cell)
	}
	return nil, waiting, nil
}

func (k *Keeper) startProbe(ctx context.Context, s *protocol.State) error {
	if err := k.layout.ValidateAt(k.clock.Now()); err != nil {
		return &OptionError{"WithClock", err}
	}
	created, err := k.checkLayout(ctx)
	if err != nil {
		return err
	}
	pick := s.Pick
	if k.locker != nil {
		pick = 0
	}
	search := protocol.NewSearch(k.nodes(), pick)
	p := &probe{search: search, locked: -1, unlock: func() {}}
	cells, err := k.firstCells(ctx, p)
	if err != nil {
		return err
	}
	waited, err := k.checkFleet(ctx, cells, !created)
	if err == nil && waited { // the cells are old
		p.search = search
		cells, err = k.firstCells(ctx, p)
	}
	if err != nil {
		return err
	}
	if k.pinned() {
		p.cells = cells
	} else {
		p.add(s, k, cells)
	}
	k.probe = p
	return nil
}

// firstCells reads the cell of the pinned number, or the first block.
func (k *Keeper) firstCells(ctx context.Context, p *probe) ([]protocol.Cell, error) {
	if !k.pinned() {
		return k.nextBlock(ctx, p)
	}
	p.search.Done = k.nodes()
	cell, err := k.readCell(ctx, k.node)
	if err == nil && cell.Damaged {
		err = k.bad[k.node]
	}
	return []protocol.Cell{cell}, err
}

// readBlock reads the next block.
func (k *Keeper) readBlock(ctx context.Context, s *protocol.State, p *probe) error {
	cells, err := k.nextBlock(ctx, p)
	if err == nil {
		p.add(s, k, cells)
	}
	return err
}

// nextBlock returns the cells of the next block, including cells that do not exist yet.
func (k *Keeper) nextBlock(ctx context.Context, p *probe) ([]protocol.Cell, error) {
	from, n := p.search.Block()
	listed, err := k.list(ctx, cell.NodeKey(from), cell.NodeKey(from+n-1)+"\x00", int(n))
	if err != nil {
		return nil, err
	}
	cells := make([]protocol.Cell, n)
	for i := range cells {
		cells[i].Node = from + int64(i)
	}
	for _, c := range listed {
		if i := c.Node - from; i >= 0 && i < n {
			cells[i] = c
		}
	}
	return cells, nil
}

// add keeps the cells that may be claimed, and counts the others.
func (p *probe) add(s *protocol.State, k *Keeper, cells []protocol.Cell) {
	k.look(s)
	for _, cell := range cells {
		cell.Still = k.still(cell)
		if _, rank := s.Choose([]protocol.Cell{cell}); rank != protocol.None {
			p.cells = append(p.cells, cell)
		} else if cell.Damaged || cell.Record.Reserved || cell.Record.Limit < s.End {
			p.count(cell)
		}
	}
}

func (p *probe) count(cell protocol.Cell) {
	p.others++
	if cell.Damaged || cell.Record.Limit == 0 {
		return
	}
	free := cell.Record.Limit
	if cell.Record.Holder != "" {
		free += cell.Record.Window // others wait for so long after the limit
	}
	if p.soonest == 0 || free < p.soonest {
		p.soonest = free
	}
}

// taken notes that a candidate cannot be claimed.
func (p *probe) taken(node int64, why error) {
	p.why = why
	for i := range p.cells {
		if c := &p.cells[i]; c.Node == node && !c.Taken {
			c.Taken = true
			p.count(*c)
		}
	}
}

// lockCandidate locks a number and reads its cell again: another process may have written
// it before it unlocked it.
func (k *Keeper) lockCandidate(ctx context.Context, p *probe, node int64) error {
	p.giveLock()()
	unlock, err := k.lock(ctx, node)
	switch {
	case errors.Is(err, stores.ErrLocked):
		p.taken(node, err)
		return nil
	case errors.Is(err, stores.ErrDamaged) && !k.pinned():
		k.damaged(node, err)
		p.taken(node, err)
		return nil
	case err != nil:
		return err
	}
	p.locked, p.unlock = node, unlock
	cell, err := k.readCell(ctx, node)
	if err != nil {
		return err
	}
	if cell.Damaged && k.pinned() {
		return k.bad[node]
	}
	for i := range p.cells {
		if p.cells[i].Node == node {
			p.cells[i] = cell
		}
	}
	if cell.Damaged {
		p.taken(node, k.bad[node])
	}
	return nil
}

// endProbe ends the present claim, if any.
func (k *Keeper) endProbe() {
	if k.probe != nil {
		k.probe.giveLock()()
		k.probe = nil
	}
}

// giveLock hands over the lock of the candidate.
func (p *probe) giveLock() (unlock func()) {
	unlock = p.unlock
	p.locked, p.unlock = -1, func() {}
	return unlock
}

// sighting is the version of a cell and the elapsed time at which it was first read.
type sighting struct {
	version uint64
	since   time.Duration
}

// maxSeen bounds the sightings. Beyond it, they are dropped, and the limits of the cells
// decide.
const maxSeen = 4096

// still reports whether the cell has had its version for two windows of our own time.
func (k *Keeper) still(cell protocol.Cell) bool {
	if k.locker != nil || cell.Record.Holder == "" || k.pinned() {
		return false
	}
	s, ok := k.seen[cell.Node]
	if !ok || s.version != cell.Version {
		if len(k.seen) >= maxSeen {
			clear(k.seen)
		}
		s = sighting{version: cell.Version, since: k.elapsed()}
		k.seen[cell.Node] = s
	}
	return (k.elapsed()-s.since)/2 >= k.span(0, max(cell.Record.Window, k.config.window)) // twice the span may overflow
}

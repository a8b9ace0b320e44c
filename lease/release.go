package lease

import (
	"context"
	"errors"
)

// Close closes the generator, if there is one, and gives the node number back, for
// the next process to go on with without a gap. It waits for the store as long as
// [WithTimeout] says for each of at most a few operations.
//
// The error is a [*ReleaseError]: the node number then stays taken for a while, and
// the Keeper is closed even so. Closing again does nothing and returns nil. A
// program that closes its generator need not close the Keeper.
func (k *Keeper) Close() error { return k.CloseContext(context.Background()) }

// CloseContext is [Keeper.Close], but stops waiting for the store when ctx ends. A ctx
// that is nil counts as [context.Background]: what must end can end.
func (k *Keeper) CloseContext(ctx context.Context) error {
	k.cancel() // whatever it waits for
	k.mu.Lock()
	holder := k.holder
	k.sealed = true // no generator from now on, or it would issue what is given back
	k.mu.Unlock()
	end := uint64(0)
	if holder != nil {
		var first bool
		if end, first = holder.Seal(); !first {
			return nil // whoever closed the generator releases
		}
	}
	return k.Release(ctx, end)
}

// Release is for the generator, which is sealed for good, and of which no tick from
// end on was used. Whatever becomes of the write, nobody issues under this lease
// again, so a late one does no harm. One that is not sealed is sealed first: everybody
// else calls Close.
func (k *Keeper) Release(ctx context.Context, end uint64) error {
	if ctx == nil {
		ctx = context.Background()
	}
	k.cancel()
	if k.finished != nil {
		<-k.finished
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil
	}
	k.closed = true
	k.setErr(ErrClosed)
	if k.holder != nil {
		if at, first := k.holder.Seal(); first {
			end = at
		}
	}
	h := k.held
	if h == nil {
		return nil
	}
	defer h.unlock()
	// Never below our own floor: below it, another may still be issuing.
	limit := h.floor
	if k.holder != nil && k.used.Node == h.cell.Node && k.used.Floor == h.floor {
		limit = min(max(limit, end), h.limit)
	}
	err := k.release(ctx, h, limit)
	if err != nil {
		k.log.Warn("lease: not released", "node", h.cell.Node, "err", err)
		return &ReleaseError{Node: h.cell.Node, Err: err}
	}
	k.counters.releases.Add(1)
	k.log.Info("lease: released", "node", h.cell.Node, "from", k.time(limit))
	return nil
}

func (k *Keeper) release(ctx context.Context, h *holding, limit uint64) error {
	r := k.record(limit)
	r.Holder, r.Owner = "", ""
	for {
		_, err := k.swap(ctx, h.cell, r)
		if !errors.Is(err, ErrConflict) {
			return err
		}
		now, is, readErr := k.read(ctx, h.cell.Node)
		switch {
		case readErr != nil:
			return readErr
		case !h.writes[is.Write]:
			return nil // another has the cell already
		}
		// An extension of unknown outcome had landed: release by its version.
		h.cell = now
		clear(h.writes)
	}
}

package lease

import (
	"context"
	"fmt"

	"github.com/tickflake/tickflake/internal/drive"
)

// Close ends the grant, so that no ID is issued any more, and releases the node number: after a clean stop the
// next process continues where this one stopped. It takes at most two timeouts of [WithTimeout], and one more
// if another call of the Keeper runs.
//
// The error wraps [ErrNotReleased]: the node number then stays held until it expires, and the Keeper is closed
// in any case. Further calls return the same error. A program that closes its generator need not close the
// Keeper.
func (k *Keeper) Close() error { return k.CloseContext(context.Background()) }

// CloseContext is [Keeper.Close], but returns as soon as ctx ends. It ends the grant in any case, and the
// release goes on in the background.
func (k *Keeper) CloseContext(ctx context.Context) error {
	k.seal()
	k.cancel()
	return k.ending.Wait(ctx, ErrNotReleased, k.release)
}

// release releases the node number, once an earlier call of the store has ended.
func (k *Keeper) release(ctx context.Context) error {
	_ = k.turn.Take(context.Background())
	defer k.turn.Leave()
	k.closed = true
	defer k.unlock(func(int64) bool { return false })
	node := k.machine.Held().Node
	if k.machine.Held().Version == 0 {
		claims := k.machine.Claims()
		if len(claims) == 0 {
			return nil
		}
		node = claims[len(claims)-1].Node // it may have landed
	}
	err := k.work(ctx)
	if err != nil {
		k.log.Warn("lease: not released", "node", node, kindAttr(err), "err", err)
		return drive.Wrap(fmt.Sprintf("%v: %d stays taken for a while: %v", ErrNotReleased, node, err), ErrNotReleased, err)
	}
	return nil
}

// seal ends the window for good. No ID is issued under this lease again, even if the
// release fails, so a release that lands late does no harm.
func (k *Keeper) seal() {
	k.state.Lock()
	defer k.state.Unlock()
	k.closing.Store(true)
	k.window.Seal()
	k.err = ErrClosed
}

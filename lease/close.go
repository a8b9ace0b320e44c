package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/window"
)

// Close seals the window, so that no ID is issued any more, and releases the node number:
// after a clean stop the next process continues where this one stopped. It makes at
// most a few operations of the store, or two if the store does not answer, each within the
// timeout of [WithTimeout].
//
// The error wraps [ErrNotReleased]: the node number then stays held until it expires, and
// the Keeper is closed in any case. Further calls return the same error. A
// program that closes its generator need not close the Keeper.
func (k *Keeper) Close() error { return k.CloseContext(context.Background()) }

// CloseContext is [Keeper.Close], but returns soon after ctx ends, whatever the store does.
// It seals the window in any case, and the release goes on by itself.
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

// Restored tells the Keeper that the memory of this process was restored or cloned: a
// virtual machine's snapshot, AWS Lambda SnapStart, CRIU. The original, or another clone,
// may issue IDs under the same grant. So the Keeper revokes the grant at once, and forgets
// its cell and its writes in flight. It then claims a number as a new
// process does, above every limit in the store; it takes the number of [WithNode]
// over from the original.
//
// Call it before the first ID is issued after the restore. It returns when there is a new
// grant, or soon after ctx ends. If ctx has a deadline, a claim that fails is tried again
// until ctx ends, unless its error is of the kind [stores.Refused]; the error is that of
// [Claim]. After an error nothing is granted, and the Keeper keeps trying.
func (k *Keeper) Restored(ctx context.Context) error {
	if !k.distrust(true) {
		return ErrClosed
	}
	return k.claimFirst(ctx)
}

// distrust takes the grant back if the program tells, or else the device, that this memory is a copy, and keeps a round
// that is under way from granting. It believes the device also after the window was sealed, so that no copy lowers the
// limit under its original. The caller has the turn, unless the program tells.
func (k *Keeper) distrust(told bool) bool {
	k.state.Lock()
	defer k.state.Unlock()
	mark, closing, by := k.page.Marker.Load(), k.closing.Load(), "Restored"
	if told && closing || !told && mark == k.mark { // told too late, the release goes by the grant
		return false
	}
	if !told {
		by, k.retry = k.page.By, 0 // what failed before was another claim
	}
	if mark != k.mark {
		k.stats.Copies++
	}
	k.restored, k.mark, k.by = true, mark, by
	if closing {
		return true
	}
	k.err = errRestored
	k.window.Fail(k.err)
	k.window.SetMark(mark)
	k.window.Revoke()
	k.used, k.given = window.Range{Node: k.used.Node}, window.Range{}
	return true
}

var errRestored = errors.New("this process's memory was restored, and no number is claimed since")

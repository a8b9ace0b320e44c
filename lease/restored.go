package lease

import (
	"context"
	"errors"

	"github.com/tickflake/tickflake/internal/window"
)

// Restored tells the Keeper that the memory of this process was restored or copied: by a virtual machine's
// snapshot, AWS Lambda SnapStart or CRIU. Call it before the first ID after the restore. The original, or
// another copy, may issue IDs under the same grant. So the Keeper revokes the grant at once, and forgets its
// cell and its writes in flight. It then claims a number as a new process does, above every limit in the store;
// it takes the number of [WithNode] over from the original.
//
// Restored returns when there is a new grant, as soon as ctx ends, and without a deadline after four timeouts
// of [WithTimeout] at most. If ctx has a deadline, a claim that fails is tried again until then, unless its
// error is of the kind [stores.Permanent]; the error is that of [Claim]. After an error nothing is granted, and
// the Keeper keeps trying.
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

// forgot notes that the machine has forgotten all, as the memory was restored.
func (k *Keeper) forgot() {
	k.state.Lock()
	node, by := k.used.Node, k.by
	k.state.Unlock()
	text := "claiming anew"
	if k.closed {
		text = "its number is left to the original"
	}
	k.log.Warn("lease: memory was restored, "+text, "node", node, "by", by)
	k.retry, k.failures = 0, 0
	clear(k.seen)
}

package lease

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/span"
	"github.com/tickflake/tickflake/internal/window"
	"github.com/tickflake/tickflake/stores"
)

// Stats has the counts of a [Keeper] since it was made, and its present grant.
type Stats struct {
	Claims     uint64 // node numbers claimed
	Extensions uint64 // grants extended
	Conflicts  uint64 // node numbers lost to other processes
	Releases   uint64 // node numbers released
	Failures   uint64 // operations of the store that failed, and cells that could not be read
	WentBack   uint64 // times that the store had lost acknowledged writes: [stores.ErrWentBack]
	// Pauses are the times that the process, or its machine, was stopped until its grant had ended.
	// Calls that come before the next extension fail.
	Pauses uint64
	// Copies are the times that this memory was found to be a copy, by VMClock: the device and its field, or ""
	// if only [Keeper.Restored] tells. See [WithVMClock].
	Copies  uint64
	VMClock string
	// Node is the node number that IDs are issued with. Remaining is the time from the
	// clock to the limit of its grant: below zero past it, and 0 if nothing is granted.
	Node      int64
	Remaining time.Duration
	// Window is the length of a grant. While the store answers, Remaining stays above
	// about two thirds of it.
	Window time.Duration
}

// tally adds one to a count of k.stats.
func (k *Keeper) tally(count *uint64) {
	k.state.Lock()
	defer k.state.Unlock()
	*count++
}

// noteCall counts an operation of the store that failed, and a cell of a node number that cannot be read.
func (k *Keeper) noteCall(node int64, err error) {
	if e, ok := errors.AsType[*drive.CallError](err); ok {
		k.tally(&k.stats.Failures)
		e.Since = k.since
	}
	if node != grant.FleetNode && errors.Is(err, stores.ErrDamaged) {
		k.damaged(node, err)
	}
}

// damaged notes a cell that cannot be read. It is logged once, unless the claim of a pinned number returns the error.
func (k *Keeper) damaged(node int64, err error) {
	k.tally(&k.stats.Failures)
	if pinned := k.pinned() && k.machine.Held().Version == 0; !pinned && !k.bad[node] && len(k.bad) < maxDamaged {
		k.bad[node] = true
		k.log.Error("lease: "+err.Error(), "node", node, kindAttr(err))
	}
}

// maxDamaged bounds the damaged cells that are logged.
const maxDamaged = 64

// Stats returns the counts so far. It never waits for the store.
func (k *Keeper) Stats() Stats {
	k.state.Lock()
	s, used := k.stats, k.used
	if k.page.Marker.Load() != k.mark { // the next step notices it
		s.Copies++
	}
	k.state.Unlock()
	if used.To > 0 {
		s.Remaining = k.time(used.To).Sub(k.clock.Now())
	}
	s.VMClock, s.Node, s.Window = k.page.By, used.Node, k.period
	return s
}

// The methods below need the turn. Each logs a change of state once.

// failed notes the failure of a try that began at an elapsed time, and returns the time until
// the next try.
func (k *Keeper) failed(err error, began time.Duration) time.Duration {
	k.window.Unwant(k.window.Wanted()) // a call that still waits wants it again
	k.setErr(err)
	if k.failures++; k.failures == 1 {
		k.since = k.clock.Now()
	}
	used := k.granted()
	if kind := stores.KindOf(err); (k.failures == 1 || kind != k.kind) && k.lost == nil {
		k.kind = kind
		attrs := []any{"node", used.Node}
		if used.To > 0 {
			attrs = append(attrs, "good until", k.time(used.To))
		}
		k.log.Warn("lease: not extended yet", append(attrs, kindAttr(err), "err", err)...)
	}
	now := k.elapsed()
	switch {
	case !k.locking() && stores.KindOf(err) != stores.Loss && !k.machine.Suspects():
		pause, granted := k.pauseBetween(now - began)
		if k.failures == 1 || granted != k.paced {
			pause = grant.Spread(pause, pick(k.random()))
		}
		k.paced = granted
		k.retry = grant.Next(began, now, pause)
	case k.failures < 10:
		k.retry = now + min(k.pause(), 20*time.Millisecond<<k.failures)
	default:
		k.retry = now + k.pause()
	}
	return k.retry - now
}

// pauseBetween is the time from a failed try that began so long ago to the next one.
func (k *Keeper) pauseBetween(ago time.Duration) (pause time.Duration, granted bool) {
	return grant.Retry(k.period, k.nodes(), min(k.between(k.front(), k.granted().To), maxWindow)+ago)
}

// noteEnd logs once that the grant has ended: calls fail from now on. err is the error of a step
// that took so long, or nil. Meanwhile the clock went on by moved.
func (k *Keeper) noteEnd(err error, took, moved time.Duration) {
	used := k.granted()
	switch {
	case used.To > 0 && k.tick() < used.To:
		k.lapsed = window.Range{}
		return
	case k.lapsed == used, used.To == 0, err == nil && k.late > 0:
		return // the next step extends a grant that ended because this process did not run
	}
	// A write of the same outage may have landed, when its limit was past: the next step extends that, too.
	logged := used.Extends(k.lapsed)
	if k.lapsed = used; logged {
		return
	}
	err = cmp.Or(err, k.Err())
	switch {
	case err != nil:
	case took < k.period:
		err = fmt.Errorf("the clock went ahead by %s within %s, past the grant: IDs go on with the next extension", span.Text(moved.Round(time.Millisecond)), took.Round(time.Millisecond))
	default:
		err = fmt.Errorf("extending the grant took %s, and the window is %s: choose a longer window", took.Round(time.Millisecond), k.period)
	}
	k.log.Error("lease: grant ended", "node", used.Node, "at", k.time(used.To), kindAttr(err), "err", err)
}

// ranLate notes that this process ran so late: it was stopped, or others had the processor.
func (k *Keeper) ranLate(late time.Duration) {
	if late <= 0 || late < k.third()/2 || k.ownTime {
		return // every timer is a little late, and a test moves its clock as it likes
	}
	k.late = max(k.late, late)
	used := k.granted()
	past := k.between(used.To, k.tick())
	if used.To == 0 || past < 0 || past > late {
		return
	}
	k.tally(&k.stats.Pauses)
	k.log.Warn(fmt.Sprintf("lease: resumed, %s after its grant ended", span.Text(past)), "node", used.Node, "at", k.time(used.To), "late", late)
}

// kindAttr tells the kind of an error in a log line.
func kindAttr(err error) slog.Attr { return slog.String("kind", stores.KindOf(err).Error()) }

// recovered notes that the store has acknowledged a grant.
func (k *Keeper) recovered() {
	k.due = k.elapsed() + k.third()
	if k.failures > 0 {
		k.log.Info("lease: recovered", "after", k.clock.Now().Sub(k.since), "failures", k.failures)
	}
	k.failures, k.retry, k.since = 0, 0, time.Time{}
	if k.Err() != nil {
		k.setErr(nil)
	}
}

func (k *Keeper) setErr(err error) {
	k.state.Lock()
	defer k.state.Unlock()
	if k.closing.Load() {
		err = ErrClosed
	}
	k.err = err
	k.window.Fail(err)
}

// third is the time between two extensions.
func (k *Keeper) third() time.Duration { return k.between(0, k.config.window) / 3 }

// pause is the time between two looks at a state that may change without the store, and between
// two tries on a store with locks, whose processes are on one host.
func (k *Keeper) pause() time.Duration {
	return min(max(k.between(0, k.config.window)/12, time.Millisecond), time.Second)
}

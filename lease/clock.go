package lease

import (
	"fmt"
	"time"

	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/internal/grant"
	"github.com/tickflake/tickflake/internal/span"
)

// This file says what is known of the machine's clocks, and of those of others, by the cells that a claim reads anyway.
// Nothing of the protocol depends on it.

// goodWall is an error of the wall clock that needs no word: a healthy host with systemd-timesyncd reaches 2 s.
const goodWall = 3 * time.Second

// noteWall logs how far the wall clock may be off, from which the Keeper's clock was made.
func (k *Keeper) noteWall() {
	switch off := base.WallError(k.clock); {
	case off > goodWall:
		k.log.Info("lease: the wall clock may be off by more than 3 s, and the times of IDs with it, by the kernel's word", "off by up to", span.Text(off))
	case off < 0:
		k.log.Debug("lease: the kernel does not say how far the wall clock may be off")
	}
}

// noteSlept logs a growth of the suspended time that the clock did not believe, once. The caller has the turn.
func (k *Keeper) noteSlept() {
	clock, ok := k.clock.(interface {
		Slept() (counted, ignored time.Duration)
	})
	if !ok {
		return
	}
	if _, ignored := clock.Slept(); ignored > k.ignored {
		k.log.Warn("lease: the machine's suspended time grew by more than a year at once, and the clock does not follow: this process was moved from another machine; restart it", "by", span.Text(ignored-k.ignored))
		k.ignored = ignored
	}
}

// The wall clock is worth a line when it is driftWarned off, and again when it is back within driftBack.
const driftWarned, driftBack = time.Minute, time.Minute / 2

// noteDrift logs once that the wall clock and the clock of the IDs have come apart, and once that they are back.
func (k *Keeper) noteDrift() {
	clock, ok := k.clock.(interface{ Drift() time.Duration })
	if !ok {
		return
	}
	drift := clock.Drift()
	switch {
	case !k.drifted && drift.Abs() > driftWarned:
		text := "lease: the wall clock was set back, or was ahead when this process started: its IDs are ahead of it; nothing makes a running clock go back: restart this process once the wall clock is right"
		if drift > 0 {
			text = "lease: the wall clock was set ahead, or this machine stood still: the IDs of this process are behind it: restart this process once the wall clock is right, or start it with monoclock.WithResync (--resync)"
		}
		k.log.Warn(text, "drift", drift)
	case k.drifted && drift.Abs() <= driftBack:
		k.log.Info("lease: the wall clock and the clock of the IDs agree again", "drift", drift)
	default:
		return
	}
	k.drifted = !k.drifted
}

// ahead is how far a tick lies ahead of our clock. doubtful says that no process with this window has been granted the
// time before it by a clock like ours: it is a minute and two windows, the larger of that and ours, behind.
func (k *Keeper) ahead(tick, window uint64) (by time.Duration, doubtful bool) {
	now := k.tick()
	return k.between(now, tick), k.between(max(now, k.fleet.Floor), tick)-2*k.between(0, max(window, k.config.window)) > time.Minute
}

// witness looks among cells that a claim has read for a grant that lies too far ahead of our clock. Reservations and
// past numbers lie ahead on purpose. It logs one, and the error is that of a strict first claim.
func (k *Keeper) witness(cells ...grant.Cell) error {
	for _, c := range cells {
		r := c.Record
		by, doubtful := k.ahead(r.Limit, r.Window)
		if !doubtful || r.Reserved || r.Past != "" || r.Limit >= k.end() || r.Holder != "" && r.Holder == k.machine.Token() {
			continue
		}
		err := drive.Wrap(fmt.Sprintf("node number %d was granted until %s, %s ahead of this clock: this clock is behind, or an earlier one was ahead: compare it with another machine's, and start again when it is right",
			c.Node, k.time(r.Limit).Format(time.RFC3339), span.Text(by.Round(time.Second))), ErrSkew)
		switch {
		case k.strict && k.Stats().Claims == 0:
			return fmt.Errorf("%w; or, if it is right, claim without the strict check", err)
		case !k.warned && c.Node != k.node: // else the line of the claim says so
			k.warned = true
			k.log.Warn("lease: "+err.Error(), "node", c.Node)
		}
	}
	return nil
}

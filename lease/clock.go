package lease

import (
	"time"

	"github.com/tickflake/tickflake/internal/base"
	"github.com/tickflake/tickflake/internal/span"
)

// This file says what is known of the machine's clocks. Nothing of the protocol depends on it.

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

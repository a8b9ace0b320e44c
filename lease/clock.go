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
		k.log.Info("lease: the wall clock may be wrong, and the times of IDs with it: nobody has set it, by the kernel's word", "off by up to", span.Text(off))
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

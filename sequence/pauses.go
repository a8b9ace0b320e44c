package sequence

import (
	"math/rand/v2"
	"time"
)

// pauses let other processes write. The process that wrote last knows the version of the cell
// and needs one operation for its next write, while the others must read first: under load it
// would come first each time.
type pauses struct {
	until  time.Duration // elapsed time before which the next refill does not begin
	shared time.Duration // until then, other processes are known to write as well
	streak int           // writes since the last pause
}

// sharedStreak is how many writes a process makes before it pauses for the
// others, and longStreak before it pauses for others that it does not know of. The pauses of
// a process that is alone cost it a twentieth.
const (
	sharedStreak = 4
	longStreak   = 64
)

// wrote notes a write of this process, which took a time, and ended at an elapsed time. A pause
// is at most most.
func (p *pauses) wrote(elapsed, took, most time.Duration) {
	if p.streak++; p.streak >= longStreak || p.streak >= sharedStreak && elapsed < p.shared {
		// The others need a read and a swap.
		p.until, p.streak = elapsed+min(2*took+rand.N(took+1), most), 0
	}
}

// conflict notes that another process wrote.
func (p *pauses) conflict(elapsed, took time.Duration) {
	p.shared = elapsed + max(100*took, time.Second)
}

package sequence

import (
	"math/rand/v2"
	"time"
)

// turns lets other processes write. The process that wrote last knows the version of the cell
// and needs one operation for its next write, while the others must read first: under load it
// would come first each time.
type turns struct {
	until  time.Duration // elapsed time before which the next refill does not begin
	shared time.Duration // until then, other processes are known to write as well
	last   time.Duration // elapsed time of the last write
	streak int           // writes one after the other
}

// sharedStreak is how many writes of a process follow one another before it pauses for the
// others, and longStreak before it pauses for others that it does not know of. The pauses of
// a process that is alone cost it a twentieth.
const (
	sharedStreak = 4
	longStreak   = 64
)

// wrote notes a write of this process, which took a time, and ended at an elapsed time. A pause
// is at most most.
func (t *turns) wrote(elapsed, took, most time.Duration) {
	if elapsed-took-t.last > 2*took { // it was idle in between
		t.streak = 0
	}
	t.streak++
	t.last = elapsed
	if t.streak >= longStreak || t.streak >= sharedStreak && elapsed < t.shared {
		// The others need a read and a swap.
		t.until, t.streak = elapsed+min(2*took+rand.N(took+1), most), 0
	}
}

// conflict notes that another process wrote.
func (t *turns) conflict(elapsed, took time.Duration) {
	t.shared = elapsed + max(100*took, time.Second)
}

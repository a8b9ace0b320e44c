package scorecard

import (
	"fmt"
	"time"
)

const about = `Each fault of the catalogue is a script: calls, and what happens to the clock, the process or the lease's store meanwhile. ` +
	`Every strategy of tickflake is put through all of them in the default layout (4,096 IDs per millisecond): on a raw wall clock, on a monoclock, and on a monoclock under a lease. ` +
	`Other generators are, as far as they can be driven. One that takes a clock, or a time per call, is handed a virtual clock; ` +
	`one that reads package time runs in a bubble of testing/synctest, where time is virtual but never wrong, or in real processes started one after the other. ` +
	`In F11 and F12 the next process goes on with the node number of the one that ended, and under a lease begins where the time ended that was granted to that, so calls wait or fail until its clock is there; a process that may take any number takes another, and no call does. ` +
	`All time is virtual, so the figures are the same on every machine, and one run is enough. ` +
	`What each is held to is its own documentation, which the last table quotes in short. The tables of quantities do not care what was promised. ` +
	`IDs lost to waiting is the virtual time for which calls waited, not counting the first tick of each (in which others have used up the IDs, so that none is lost), times the IDs per second that the format holds: ` +
	`what a generator that did not wait could have issued meanwhile.`

// marks are what may stand in a cell of the score card.
var marks = [][2]string{
	{fine, "nobody noticed: every call was served, in order, after no more than one tick"},
	{"12 err", "no promise was broken, at this price, of which the worst is shown: calls, or starts, that failed (err), IDs out of order (disorder), a wait beyond one tick (stall), an ID ahead of the clock by more than a tick (lead)"},
	{wrong + "3 dup", "an ID was issued twice (dup), or for another time (out of time), or something happened that the documentation promises not to"},
	{notRun, "it could not be run, which says nothing about it; the last table has the reason"},
	{"*", "it was run with another script than tickflake, as the last table says"},
}

func notes(limit time.Duration) []string {
	return []string{
		"F16 is run with eight callers on generators that take a clock, and with one on the others. Its stalls, and IDs lost, are those of another run with one caller, for of several it cannot be told who waits for what.",
		"One run per cell. What is random is F14, where the lease draws among free node numbers; the bits of a random UUID, ULID or KSUID; and for gofrs/uuid v1 in F12, whether two random starts meet.",
		"After the end of time and before its beginning (F17, F18), and on a damaged file (F20), to fail is right, and costs nothing here.",
		fmt.Sprintf("A peer in a process of its own was ended when it had not answered within %s of real time.", limit),
	}
}

package sequence

import "time"

// Stats has the counts of a [Sequence] since it was opened, and its present state.
type Stats struct {
	Issued    uint64        // numbers handed out
	Refills   uint64        // writes that granted numbers to this process
	Waited    time.Duration // for the store, by these writes and the reads before them, in all
	Conflicts uint64        // writes that another process's write preceded
	Failures  uint64        // operations of the store that failed
	Starved   uint64        // calls that waited for the store; 0 in ordered mode, where every call does
	Lost      uint64        // numbers that this process was granted and will never issue; it never falls
	WentBack  uint64        // times that the store had lost acknowledged writes: [stores.ErrWentBack]
	// Copies are the times that this memory was found to be a copy, by VMClock: the device and its field, or ""
	// if only [Sequence.Restored] tells. See [WithVMClock].
	Copies  uint64
	VMClock string

	Rate     float64 // numbers per second that this process takes: up at once, and down slowly
	Step     int64   // how many numbers the next refill reserves; 0 in ordered mode
	Reserved int64   // numbers that are granted to this process and not handed out; 0 while the store seems to have gone back
	// GapBound is how many numbers a crash of this process can lose at most, by the
	// definition and the largest batch so far. A batch above MaxStep whose call ended before
	// it had its numbers stays reserved, and adds to it. The numbers of the calls that run
	// are lost too: in ordered mode nothing but them.
	GapBound int64
	// Last is the highest number that was granted to any process as far as this one knows,
	// and Left how many numbers lie above it, up to the maximum. Last is one stride below the
	// first number if none was granted.
	Last, Left int64
}

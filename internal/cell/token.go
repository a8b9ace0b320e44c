package cell

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

const (
	size     = 12 // bytes of a token
	readings = 16 // of the clock, for a token
)

// Token draws a text that no other process draws, for the holder of a cell or for one
// write. The random bytes of the operating system are not enough: a copy of a whole
// machine has its random state too, and draws the same bytes until its kernel mixes in
// something of its own. So the instants of some readings of the clock are added, whose
// nanoseconds differ from one machine to the other.
func Token() string {
	var drawn [size]byte
	rand.Read(drawn[:]) // never fails
	all := append(make([]byte, 0, size+16*readings), drawn[:]...)
	for range readings {
		now := time.Now()
		all = binary.LittleEndian.AppendUint64(all, uint64(now.UnixNano()))
		all = binary.LittleEndian.AppendUint64(all, uint64(now.Sub(begin))) // monotonic
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:size])
}

// begin is where monotonic time is counted from.
var begin = time.Now()

package cell

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// readings is how many times Token reads the clock.
const readings = 16

// Token draws a text that no other process draws, for the holder of a cell or for one
// write. The random bytes of the operating system are not enough: a copy of a whole
// machine has its random state too, and draws the same bytes until its kernel mixes in
// something of its own. So the instants of some readings of the clock are added, whose
// nanoseconds differ from one machine to the other.
func Token() string {
	h := sha256.New()
	var b [12]byte
	rand.Read(b[:]) // never fails
	h.Write(b[:])
	for range readings {
		now := time.Now()
		h.Write(binary.LittleEndian.AppendUint64(b[:0], uint64(now.UnixNano())))
		h.Write(binary.LittleEndian.AppendUint64(b[:0], uint64(time.Since(begin))))
	}
	return hex.EncodeToString(h.Sum(nil)[:len(b)])
}

// begin is where monotonic time is counted from.
var begin = time.Now()

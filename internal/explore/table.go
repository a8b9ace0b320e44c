package explore

import (
	"crypto/sha256"
	"encoding/binary"
)

// hash stands for a state.
type hash [16]byte

func hashOf(key []byte) hash {
	sum := sha256.Sum256(key)
	return hash(sum[:])
}

// noParent is the parent of a state at the start.
const noParent = 1<<32 - 1

// entry is a visited state.
type entry struct {
	hash   hash
	parent uint32 // the number of the state that it was found from
}

// table has all visited states, by number and by hash: 20 bytes for each, and 5 to 11 of the index.
type table struct {
	n      int
	chunks [][]entry // all full but the last, so that growing moves none
	index  []uint32  // open addressing: 1 + the number of a state, or 0
}

const chunk = 1 << 16

func (t *table) entry(number uint32) *entry { return &t.chunks[number/chunk][number%chunk] }

// slot is where a hash stands in the index, or is to be put.
func (t *table) slot(h hash) uint64 {
	mask := uint64(len(t.index) - 1)
	for i := binary.LittleEndian.Uint64(h[:]) & mask; ; i = (i + 1) & mask {
		if n := t.index[i]; n == 0 || t.entry(n-1).hash == h {
			return i
		}
	}
}

func (t *table) has(h hash) bool { return t.index[t.slot(h)] != 0 }

// add adds a state, which is not in the table. Its number is the count of those before.
func (t *table) add(h hash, parent uint32) {
	if t.n%chunk == 0 {
		t.chunks = append(t.chunks, make([]entry, 0, chunk))
	}
	last := len(t.chunks) - 1
	t.chunks[last] = append(t.chunks[last], entry{h, parent})
	t.n++
	if t.n > len(t.index)/4*3 {
		t.index = make([]uint32, 2*len(t.index))
		for n := range t.n - 1 {
			t.index[t.slot(t.entry(uint32(n)).hash)] = uint32(n + 1)
		}
	}
	t.index[t.slot(h)] = uint32(t.n)
}

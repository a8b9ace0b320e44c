package explore

import (
	"bytes"
	"slices"
)

// Key is what is written of a state for [Model]'s Key.
type Key []byte

// Add appends numbers, each in one byte.
func (k *Key) Add(numbers ...uint64) {
	for _, n := range numbers {
		*k = append(*k, byte(n))
	}
}

// Flags appends at most 8 flags, in one byte.
func (k *Key) Flags(flags ...bool) {
	var b byte
	for _, f := range flags {
		b <<= 1
		if f {
			b |= 1
		}
	}
	*k = append(*k, b)
}

// end ends a list.
const end = 0xfc

// Sorted appends what add appends for each of n things, sorted: their order does not matter. What add
// appends nothing for is left out. With once, so is all but one of those that are alike.
func (k *Key) Sorted(n int, once bool, add func(i int)) {
	if n > 0 {
		begin := len(*k)
		var room [8][]byte
		list := room[:0]
		for i := range n {
			at := len(*k)
			if add(i); len(*k) > at {
				list = append(list, (*k)[at:])
			}
		}
		slices.SortFunc(list, bytes.Compare)
		if once {
			list = slices.CompactFunc(list, bytes.Equal)
		}
		var sorted [256]byte
		all := sorted[:0]
		for _, b := range list {
			all = append(all, b...)
		}
		*k = append((*k)[:begin], all...)
	}
	*k = append(*k, end)
}

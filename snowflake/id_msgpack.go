package snowflake

import (
	"encoding/binary"
	"math"
	"strconv"
)

// The first byte of an integer in MessagePack, by https://github.com/msgpack/msgpack/blob/master/spec.md. A
// number below msgpackSmall is its own first byte; the signed types follow the unsigned ones, each from 8 bits
// up to 64.
const (
	msgpackSmall  = 0x80
	msgpackUint8  = 0xcc
	msgpackUint64 = 0xcf
	msgpackInt8   = 0xd0
	msgpackInt64  = 0xd3
)

// MarshalMsgpack implements the Marshaler of github.com/vmihailenco/msgpack, with a 64-bit
// integer, which that package would otherwise write as 8 raw bytes. It fails, with [ErrRange], only for a negative ID.
func (id ID) MarshalMsgpack() ([]byte, error) {
	if err := id.checkWritable(); err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint64([]byte{msgpackInt64}, uint64(id)), nil
}

// UnmarshalMsgpack implements the Unmarshaler of github.com/vmihailenco/msgpack. It accepts an integer of any
// width, and no nil: read a field that may be nil into a *ID.
//
// The error wraps [ErrRange], [ErrLength], or [ErrType] for a value of any other type.
func (id *ID) UnmarshalMsgpack(data []byte) error {
	if len(data) == 0 {
		return refuse("msgpack", "", ErrLength, "no value")
	}
	first, rest := data[0], data[1:]
	width, signed := 0, false
	switch {
	case first < msgpackSmall:
	case msgpackUint8 <= first && first <= msgpackUint64:
		width = 1 << (first - msgpackUint8)
	case msgpackInt8 <= first && first <= msgpackInt64:
		width, signed = 1<<(first-msgpackInt8), true
	default: // also the small negative ones
		return refuse("msgpack", "", ErrType, "first byte 0x"+strconv.FormatUint(uint64(first), 16)+", want an integer that is not negative")
	}
	if len(rest) != width {
		return refuse("msgpack", "", ErrLength, strconv.Itoa(len(rest))+" bytes follow the first, want "+strconv.Itoa(width))
	}
	v := uint64(first)
	if width > 0 {
		v = 0
	}
	for _, b := range rest {
		v = v<<8 | uint64(b)
	}
	if v > math.MaxInt64 || signed && v>>(8*width-1) != 0 {
		return refuse("msgpack", "", ErrRange, "is negative or above 9223372036854775807")
	}
	*id = ID(v)
	return nil
}

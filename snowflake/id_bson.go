package snowflake

import (
	"encoding/binary"
	"fmt"
)

// The types of BSON that hold an ID, by https://bsonspec.org/spec.html.
const (
	bsonInt32 = 0x10
	bsonInt64 = 0x12
	bsonNull  = 0x0a
)

// MarshalBSONValue implements the ValueMarshaler of MongoDB's driver, version 2, with a
// 64-bit integer. It fails, with [ErrRange], only for a negative ID.
//
// Version 1 of the driver uses neither this method nor [ID.UnmarshalBSONValue], because
// the type in its interfaces is not a byte. It treats an ID as a plain int64, writes a
// negative one, and reads null and false as 0 and true as 1.
func (id ID) MarshalBSONValue() (typ byte, data []byte, err error) {
	if err := id.checkWritable(); err != nil {
		return 0, nil, err
	}
	return bsonInt64, binary.LittleEndian.AppendUint64(nil, uint64(id)), nil
}

// UnmarshalBSONValue implements the ValueUnmarshaler of MongoDB's driver, version 2. It
// accepts an integer of 64 or 32 bits. It refuses null: read a field that may be null
// into a *ID. Version 1 of the driver does not use this method: see
// [ID.MarshalBSONValue].
//
// The error wraps [ErrRange], [ErrLength], or [ErrType] for values of any other type.
func (id *ID) UnmarshalBSONValue(typ byte, data []byte) error {
	var v int64
	switch typ {
	case bsonInt64:
		if len(data) != 8 {
			return refuse("BSON", string(data), ErrLength, fmt.Sprintf("length %d, want 8", len(data)))
		}
		v = int64(binary.LittleEndian.Uint64(data))
	case bsonInt32:
		if len(data) != 4 {
			return refuse("BSON", string(data), ErrLength, fmt.Sprintf("length %d, want 4", len(data)))
		}
		v = int64(int32(binary.LittleEndian.Uint32(data)))
	case bsonNull:
		return refuse("BSON", "", ErrType, "null; read into a *ID if the field may be null")
	default:
		return refuse("BSON", "", ErrType, fmt.Sprintf("type 0x%02x, want an integer of 64 or 32 bits", typ))
	}
	return id.set(fromSigned("BSON", v))
}

package snowflake

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
)

// ID is a unique, time-ordered identifier of 63 bits: the top bit of the int64 is
// always 0, so an ID runs from 0 to 9223372036854775807 and is never negative. A
// [Layout] gives the bits their meaning: [Layout.Decode] returns when an ID was issued,
// and by which node.
//
// Under one layout the order of IDs is the order of their ticks (within one tick, the
// order of the lower bits), so <, [cmp.Compare] and [slices.Sort] put IDs in order of
// time. The zero ID is an ID like any other: the first slot of node 0 at the epoch. It
// does not mean "absent"; use a pointer, or [database/sql.Null], for that.
//
// # Choosing a form
//
//   - A database: a BIGINT column, through [ID.Value] and [ID.Scan]; in MongoDB a
//     64-bit integer, through [ID.MarshalBSONValue] (version 2 of its driver).
//   - JSON: a string, "1541815603606036480", because JavaScript rounds numbers above
//     1<<53. For a field that may be null, use a *ID: a [database/sql.Null] of ID
//     becomes {"V":"1541815603606036480","Valid":true}.
//   - MessagePack: an integer with github.com/vmihailenco/msgpack, through [ID.MarshalMsgpack];
//     ugorji/go/codec writes 8 bytes, through [ID.MarshalBinary].
//   - A parameter of a web request: gin and echo, gorilla/schema and fiber refuse what [Parse] refuses,
//     through [ID.UnmarshalParam] and [ID.UnmarshalText]. go-playground/form takes "-5" and "007" until you
//     register Parse with its RegisterCustomTypeFunc.
//   - Text for programs: [ID.String], decimal. It sorts as text only among IDs of
//     equal length.
//   - Text that must sort, be short, or be typed by people: [ID.Base32], [ID.Base58]
//     and [ID.Base62], each of a fixed width.
//   - Keys in an ordered store: [ID.Bytes], 8 bytes that sort like the ID.
//
// Each text form has one spelling per ID and its parser accepts no other, with one
// exception for people who type: [ParseBase32] accepts either case and look-alikes.
//
// # Negative values
//
// No generator issues a negative ID; only a conversion such as ID(-5) makes one. That
// is a bug in the caller, and every method shows it without a panic. Methods with an
// error result ([ID.AppendText], [ID.MarshalText], [ID.MarshalJSON], [ID.AppendBinary],
// [ID.MarshalBinary], [ID.MarshalBSONValue], [ID.MarshalMsgpack] and [ID.Value]) return an error that wraps [ErrRange], so that no
// value is stored that cannot be read back. Methods without one write it: [ID.String]
// and [ID.LogValue] with a minus sign, [ID.Bytes] and the three fixed-width forms as
// the unsigned number with the same 64 bits. Every parser refuses all of these.
type ID int64

// maxErrorText is how many bytes of the input an error keeps.
const maxErrorText = 64

// refuse builds the error for input that is not an ID: its form ("decimal", "base32",
// "JSON", "SQL" ...), the input quoted and cut to a length that fits a log, the cause and
// the reason. It formats by hand because an argument of fmt.Errorf escapes to the heap,
// which would cost an allocation in every conversion from []byte, also without an error.
func refuse(form, text string, cause error, reason string) error {
	message := form + " ID"
	if text != "" {
		kept := text[:min(len(text), maxErrorText)]
		message += " " + strconv.Quote(kept)
		if len(kept) < len(text) {
			message += "…"
		}
	}
	return fmt.Errorf("%s: %w: %s", message, cause, reason)
}

// refuseTooLarge is refuse for a number beyond the largest ID.
func refuseTooLarge(form, text string) error {
	return refuse(form, text, ErrRange, "exceeds "+strconv.FormatInt(math.MaxInt64, 10))
}

// Parse reads the decimal form that [ID.String] writes: 1 to 19 ASCII digits
// up to 9223372036854775807, and nothing else. A sign, a space, an underscore
// and a leading zero (except in "0" itself) are refused, so that two texts are
// equal exactly when their IDs are.
//
// The error wraps [ErrLength] (empty), [ErrSyntax]
// or [ErrRange].
func Parse(s string) (ID, error) { return parseDecimal("decimal", s) }

// parseDecimal is Parse for another form that contains the digits.
func parseDecimal(form, s string) (ID, error) {
	if s == "" {
		return 0, refuse(form, s, ErrLength, "empty, want 1 to 19 digits")
	}
	id, err := decimalDigits.parse(form, s)
	if err != nil {
		return 0, err
	}
	if s[0] == '0' && len(s) > 1 {
		return 0, refuse(form, s, ErrSyntax, "leading zero at offset 0")
	}
	return id, nil
}

// set makes id what a parser returned, or leaves it as it was after an error.
func (id *ID) set(v ID, err error) error {
	if err == nil {
		*id = v
	}
	return err
}

// fromSigned is the ID of a number of another form, unless that is negative.
func fromSigned(form string, n int64) (ID, error) {
	if n < 0 {
		return 0, refuse(form, strconv.FormatInt(n, 10), ErrRange, "is negative")
	}
	return ID(n), nil
}

// checkWritable returns an error for a negative ID; see the doc of [ID].
func (id ID) checkWritable() error {
	if id < 0 {
		return fmt.Errorf("ID %d is %w: it is negative", int64(id), ErrRange)
	}
	return nil
}

// Int64 returns the ID as a plain integer.
func (id ID) Int64() int64 { return int64(id) }

// String returns the ID in decimal, without padding. [Parse] reads it back.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// LogValue implements [slog.LogValuer]: the decimal form as a string, because
// log viewers written in JavaScript would round a number.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.String()) }

// AppendText implements [encoding.TextAppender]: it appends the decimal form.
// It fails, with [ErrRange], only for a negative ID, and then returns b as it
// was.
func (id ID) AppendText(b []byte) ([]byte, error) {
	if err := id.checkWritable(); err != nil {
		return b, err
	}
	return strconv.AppendInt(b, int64(id), 10), nil
}

// MarshalText implements [encoding.TextMarshaler] with the decimal form, which
// also serves for keys of JSON objects and for XML. It fails, with
// [ErrRange], only for a negative ID.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText implements [encoding.TextUnmarshaler]. It accepts what
// [Parse] accepts, with the same errors.
func (id *ID) UnmarshalText(text []byte) error { return id.set(Parse(string(text))) }

// UnmarshalParam is [ID.UnmarshalText] for web frameworks that bind a parameter by its kind, which is that of
// an int64: gin and echo ask for this method first, and would otherwise take "-5" and "007".
func (id *ID) UnmarshalParam(text string) error { return id.UnmarshalText([]byte(text)) }

// MarshalJSON implements [json.Marshaler]: a JSON string with the decimal form,
// because a JavaScript number keeps only 53 bits. It fails, with [ErrRange],
// only for a negative ID.
func (id ID) MarshalJSON() ([]byte, error) {
	if err := id.checkWritable(); err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(`"9223372036854775807"`))
	b = append(b, '"')
	b = strconv.AppendInt(b, int64(id), 10)
	return append(b, '"'), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts a JSON string as
// [ID.MarshalJSON] writes it and, from writers that have 64-bit integers, a
// JSON number without sign, fraction or exponent; the digits are those of
// [Parse]. A JSON null changes nothing, as is the custom of [encoding/json].
//
// The error wraps [ErrLength] (an empty string),
// [ErrSyntax], [ErrRange], or [ErrType] for a value of another kind.
func (id *ID) UnmarshalJSON(data []byte) error {
	text := data
	switch {
	case string(data) == "null":
		return nil
	case len(data) > 0 && (data[0] == '-' || '0' <= data[0] && data[0] <= '9'):
	case len(data) > 1 && data[0] == '"' && data[len(data)-1] == '"':
		text = data[1 : len(data)-1]
		// No common writer escapes digits, but an escaped digit is valid JSON.
		if bytes.IndexByte(text, '\\') >= 0 {
			var s string
			if err := json.Unmarshal(data, &s); err != nil {
				return refuse("JSON", string(text), ErrSyntax, "not a JSON string")
			}
			text = []byte(s)
		}
	default:
		return refuse("JSON", string(data), ErrType, "want a string of digits or an integer")
	}
	return id.set(parseDecimal("JSON", string(text)))
}

// Value implements [driver.Valuer]: an int64, for a column of type BIGINT. It
// fails, with [ErrRange], only for a negative ID.
func (id ID) Value() (driver.Value, error) {
	if err := id.checkWritable(); err != nil {
		return nil, err
	}
	return int64(id), nil
}

// Scan implements [database/sql.Scanner]. It accepts an int64, a uint64 (as
// MySQL drivers deliver BIGINT UNSIGNED), and a string or []byte that [Parse]
// accepts. It refuses NULL: scan a column that may be NULL into a
// [database/sql.Null] of ID.
//
// The error wraps [ErrRange], [ErrSyntax],
// [ErrLength], or [ErrType] for NULL and for values of any other type.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case int64:
		return id.set(fromSigned("SQL", src))
	case uint64:
		if src > math.MaxInt64 {
			return refuseTooLarge("SQL", strconv.FormatUint(src, 10))
		}
		*id = ID(src)
		return nil
	case string:
		return id.set(parseDecimal("SQL", src))
	case []byte:
		return id.set(parseDecimal("SQL", string(src)))
	case nil:
		return refuse("SQL", "", ErrType, "NULL; scan into sql.Null[ID] if the column may be NULL")
	default:
		return refuse("SQL", "", ErrType, fmt.Sprintf("type %T, want int64, uint64, string or []byte", src))
	}
}

// Bytes returns the ID as 8 bytes, most significant first, so that the bytes
// sort as the IDs do. [FromBytes] reads them back.
func (id ID) Bytes() [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return b
}

// FromBytes reads the 8 bytes that [ID.Bytes] writes.
//
// The error wraps [ErrLength] if there are not
// exactly 8 bytes, or [ErrRange] if the top bit is set.
func FromBytes(b []byte) (ID, error) {
	if len(b) != 8 {
		return 0, refuse("binary", string(b), ErrLength, fmt.Sprintf("length %d, want 8", len(b)))
	}
	v := binary.BigEndian.Uint64(b)
	if v > math.MaxInt64 {
		return 0, refuseTooLarge("binary", string(b))
	}
	return ID(v), nil
}

// AppendBinary implements [encoding.BinaryAppender]: it appends the 8 bytes of
// [ID.Bytes]. It fails, with [ErrRange], only for a negative ID, and then
// returns b as it was.
func (id ID) AppendBinary(b []byte) ([]byte, error) {
	if err := id.checkWritable(); err != nil {
		return b, err
	}
	return binary.BigEndian.AppendUint64(b, uint64(id)), nil
}

// MarshalBinary implements [encoding.BinaryMarshaler] with the 8 bytes of
// [ID.Bytes]; [encoding/gob] uses it. It fails, with [ErrRange], only for a
// negative ID.
func (id ID) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. It accepts what
// [FromBytes] accepts, with the same errors.
func (id *ID) UnmarshalBinary(data []byte) error { return id.set(FromBytes(data)) }

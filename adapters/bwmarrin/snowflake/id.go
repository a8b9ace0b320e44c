package snowflake

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// ID is a Snowflake ID with the forms of the original package. It converts to snowflake.ID, which has
// other alphabets for base 32 and base 58.
type ID int64

// Int64 returns the ID as a plain integer.
func (f ID) Int64() int64 { return int64(f) }

// ParseInt64 returns the ID that [ID.Int64] shows.
func ParseInt64(id int64) ID { return ID(id) }

// String returns the ID in decimal.
func (f ID) String() string { return strconv.FormatInt(int64(f), 10) }

// ParseString reads [ID.String], a sign and leading zeros. The error is a [*strconv.NumError].
func ParseString(id string) (ID, error) { return parse(id, 10) }

// Base2 returns the ID in binary digits.
func (f ID) Base2() string { return strconv.FormatInt(int64(f), 2) }

// ParseBase2 reads what [ID.Base2] writes. The error is a [*strconv.NumError].
func ParseBase2(id string) (ID, error) { return parse(id, 2) }

// Base36 returns the ID in digits and lower-case letters.
func (f ID) Base36() string { return strconv.FormatInt(int64(f), 36) }

// ParseBase36 reads [ID.Base36] and upper-case letters. The error is a [*strconv.NumError].
func ParseBase36(id string) (ID, error) { return parse(id, 36) }

func parse(text string, base int) (ID, error) {
	n, err := strconv.ParseInt(text, base, 64)
	return ID(n), err
}

// The errors of [ParseBase32] and [ParseBase58].
var (
	ErrInvalidBase32 = errors.New("invalid base 32: want 1 to 13 characters of " + string(zBase32) + ", 64 bits at most")
	ErrInvalidBase58 = errors.New("invalid base 58: want 1 to 11 digits and letters except 0, O, I and l, 64 bits at most")
)

// Base32 returns the ID in the alphabet of z-base-32, without padding: up to 13 characters.
func (f ID) Base32() string { return zBase32.format(uint64(f)) }

// ParseBase32 reads what [ID.Base32] writes. The ID of an error, [ErrInvalidBase32], is -1.
func ParseBase32(b []byte) (ID, error) { return zBase32.parse(b, ErrInvalidBase32) }

// Base58 returns the ID in Flickr's alphabet, lower case first, without padding: up to 11 characters.
func (f ID) Base58() string { return flickr58.format(uint64(f)) }

// ParseBase58 reads what [ID.Base58] writes. The ID of an error, [ErrInvalidBase58], is -1.
func ParseBase58(b []byte) (ID, error) { return flickr58.parse(b, ErrInvalidBase58) }

// alphabet is a set of digits for numbers, the smallest first.
type alphabet string

const (
	zBase32  alphabet = "ybndrfg8ejkmcpqxot1uwisza345h769"
	flickr58 alphabet = "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"
)

func (a alphabet) format(n uint64) string {
	var text [13]byte // 64 bits in base 32
	base, first := uint64(len(a)), len(text)
	for {
		first--
		text[first] = a[n%base]
		if n /= base; n == 0 {
			return string(text[first:])
		}
	}
}

// parse reads a number of at least one digit and at most 64 bits.
func (a alphabet) parse(text []byte, invalid error) (ID, error) {
	var n uint64
	for _, c := range text {
		digit := strings.IndexByte(string(a), c)
		high, low := bits.Mul64(n, uint64(len(a)))
		if digit < 0 || high > 0 || low > math.MaxUint64-uint64(digit) {
			return -1, invalid
		}
		n = low + uint64(digit)
	}
	if len(text) == 0 {
		return -1, invalid
	}
	return ID(n), nil
}

// Base64 returns the decimal digits in standard base 64, with padding.
func (f ID) Base64() string { return base64.StdEncoding.EncodeToString(f.Bytes()) }

// ParseBase64 reads [ID.Base64]. The error is a base64.CorruptInputError or a [*strconv.NumError].
func ParseBase64(id string) (ID, error) {
	b, err := base64.StdEncoding.DecodeString(id)
	if err != nil {
		return -1, err
	}
	return ParseBytes(b)
}

// Bytes returns the decimal digits of [ID.String].
func (f ID) Bytes() []byte { return []byte(f.String()) }

// ParseBytes reads what [ID.Bytes] writes, as [ParseString] does.
func ParseBytes(id []byte) (ID, error) { return ParseString(string(id)) }

// IntBytes returns the ID as 8 bytes, most significant first.
func (f ID) IntBytes() [8]byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(f))
	return b
}

// ParseIntBytes reads what [ID.IntBytes] returns.
func ParseIntBytes(id [8]byte) ID { return ID(binary.BigEndian.Uint64(id[:])) }

// JSONSyntaxError reports a JSON value that is not a string with an ID.
type JSONSyntaxError struct{ original []byte }

// Error shows the value, as far as it is short.
func (j JSONSyntaxError) Error() string {
	return fmt.Sprintf("invalid snowflake ID %.64q: want a JSON string of decimal digits", j.original)
}

// MarshalJSON returns the decimal digits as a JSON string, since a JavaScript number keeps 53 bits.
func (f ID) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, f.String()), nil }

// UnmarshalJSON reads [ID.MarshalJSON], and no null. The error is a [JSONSyntaxError] or [*strconv.NumError].
func (f *ID) UnmarshalJSON(b []byte) error {
	last := len(b) - 1
	if last < 2 || b[0] != '"' || b[last] != '"' {
		return JSONSyntaxError{b}
	}
	id, err := ParseBytes(b[1:last])
	if err != nil {
		return err
	}
	*f = id
	return nil
}

package snowflake

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// The fixed-width forms write an ID as a number in base 32, 58 or 62, most
// significant digit first, padded on the left with the alphabet's zero. Each
// alphabet is in ASCII order, and each width is the least that holds 64 bits, so
// the texts sort as the numbers do.
var (
	decimalDigits = newAlphabet("0123456789")
	base32Form    = fixedForm{"base32", crockford(), 13}
	base58Form    = fixedForm{"base58", newAlphabet("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"), 11}
	base62Form    = fixedForm{"base62", newAlphabet("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), 11}
)

// Base32 returns the ID as 13 characters of Crockford's base 32
// (https://www.crockford.com/base32.html), upper case: "1ASD13XH1F800".
// Choose it where people read, dictate or type IDs, and where letter case may
// be lost, as in file names and host names. Compared byte by byte, the texts
// sort as the IDs do. [ParseBase32] reads it back.
func (id ID) Base32() string { return base32Form.format(id) }

// Base58 returns the ID as 11 characters of the alphabet that Bitcoin
// addresses use, which leaves out 0, O, I and l: "4aaW4SzAyQK". It is as short
// as [ID.Base62] without the look-alikes. Compared byte by byte, the texts sort
// as the IDs do. Under a language's collation, the default of many databases, they do not, and where it
// ignores case, different IDs compare equal: declare the column COLLATE "C" (PostgreSQL) or ascii_bin
// (MySQL), or take [ID.Base32], which sorts under all of them. [ParseBase58] reads it back.
//
// Only the alphabet is Bitcoin's: there is no checksum, and the padding is to a
// fixed width. Other alphabets of 58 characters are in use (Flickr's puts the
// lower case first); their texts do not mix with these.
func (id ID) Base58() string { return base58Form.format(id) }

// Base62 returns the ID as 11 characters from 0-9, A-Z and a-z, in this order:
// "1ptWyK4WgZU". Choose it for programs that expect every ASCII letter and
// digit; it is no shorter than [ID.Base58]. It sorts as that does.
// [ParseBase62] reads it back.
//
// Some encoders put the lower case first; their texts do not mix with these.
func (id ID) Base62() string { return base62Form.format(id) }

// ParseBase32 reads the 13 characters that [ID.Base32] writes. As Crockford's
// specification (https://www.crockford.com/base32.html) says, letter case does
// not matter, I and L are read as 1, O is read as 0, and U is refused. The
// hyphens and the check symbol that the specification makes optional are
// refused too: the width is fixed.
//
// The error wraps [ErrLength], [ErrSyntax] or
// [ErrRange], in this order of precedence.
func ParseBase32(s string) (ID, error) { return base32Form.parse(s) }

// ParseBase58 reads the 11 characters that [ID.Base58] writes; case matters.
//
// The error wraps [ErrLength], [ErrSyntax] or
// [ErrRange], in this order of precedence.
func ParseBase58(s string) (ID, error) { return base58Form.parse(s) }

// ParseBase62 reads the 11 characters that [ID.Base62] writes; case matters.
//
// The error wraps [ErrLength], [ErrSyntax] or
// [ErrRange], in this order of precedence.
func ParseBase62(s string) (ID, error) { return base62Form.parse(s) }

// alphabet is a set of digits with the table to read them back.
type alphabet struct {
	digits string
	value  [256]uint8 // by character; notDigit where there is none
}

const notDigit = 0xff

func newAlphabet(digits string) *alphabet {
	a := &alphabet{digits: digits}
	for i := range a.value {
		a.value[i] = notDigit
	}
	for i := range len(digits) {
		a.value[digits[i]] = uint8(i)
	}
	return a
}

// crockford returns the base 32 alphabet with all its readings.
func crockford() *alphabet {
	a := newAlphabet("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
	a.value['I'], a.value['L'], a.value['O'] = 1, 1, 0
	for c := 'A'; c <= 'Z'; c++ {
		a.value[c-'A'+'a'] = a.value[c]
	}
	return a
}

// parse reads s, of any length, as an ID in the base of the alphabet. form is
// for the error. A bad character is reported before a number that is too large,
// wherever each of them stands.
func (a *alphabet) parse(form, s string) (ID, error) {
	base := uint64(len(a.digits))
	var n uint64
	tooLarge := false
	for i := range len(s) {
		d := uint64(a.value[s[i]])
		if d == notDigit {
			return 0, refuse(form, s, ErrSyntax,
				"bad character "+strconv.Quote(s[i:i+1])+" at offset "+strconv.Itoa(i))
		}
		hi, lo := bits.Mul64(n, base)
		tooLarge = tooLarge || hi != 0 || lo > math.MaxInt64-d
		n = lo + d
	}
	if tooLarge {
		return 0, refuseTooLarge(form, s)
	}
	return ID(n), nil
}

// fixedForm is an alphabet at a fixed width.
type fixedForm struct {
	name string
	*alphabet
	width int
}

// format writes the bits of id as an unsigned number, so that a negative ID has a
// text, too; parse refuses that as too large.
func (f *fixedForm) format(id ID) string {
	var buf [13]byte // the widest form is base32
	base := uint64(len(f.digits))
	n := uint64(id)
	for i := f.width - 1; i >= 0; i-- {
		buf[i] = f.digits[n%base]
		n /= base
	}
	return string(buf[:f.width])
}

func (f *fixedForm) parse(s string) (ID, error) {
	if len(s) != f.width {
		return 0, refuse(f.name, s, ErrLength, fmt.Sprintf("length %d, want %d", len(s), f.width))
	}
	return f.alphabet.parse(f.name, s)
}

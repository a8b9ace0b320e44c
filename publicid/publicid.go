// Package publicid gives a number another form for strangers: 17 characters that tell nothing about it.
//
// It is not for access control: whoever has seen a public form can use it, so check the rights of each request
// all the same. It is not for storage or sorting: keep the number in the database. A number has one form
// under a secret, so forms show which rows have the same number. Without the secret, a form cannot be read.
//
// An ID shows when it was issued, and an order number shows how many orders there are. Their public forms show
// neither, and nobody can tell another form, from however many forms. A typing error or a guess is refused, but for
// 1 in 65,536.
//
// You need these names: [New], [Codec.Encode] and [Codec.Decode]. Every int64 that is not negative has a public
// form, so IDs and the numbers of sequences do.
//
// # The form
//
// The 63 bits of the number, and 16 zero bits as a check, go through FF1 of NIST SP 800-38G: AES-256, radix 2,
// 79 digits, an empty tweak. Its key is HKDF-SHA256 of the secret, without a salt, for the purpose
// "tickflake publicid, version 1". The result is written in base 31, by the digits and the consonants, so that no
// form is a word. One more such character stands before it and names the secret, so that a form is never read with
// another secret: byte 33 of the HKDF, modulo 31.
package publicid

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

var (
	// ErrSecret says that a secret of [New] is too short, that there are too many, or that two have one name.
	ErrSecret = errors.New("publicid: unusable secret")

	// ErrForm says that a text is the public form of no number under these secrets: a typing error, a
	// guess, or a form under a secret that is not among them.
	ErrForm = errors.New("publicid: no public form under these secrets")
)

const (
	// Len is the length of a public form in characters.
	Len = 17

	minSecret  = 16 // bytes
	maxSecrets = 4  // of 31 names; with more, most new secrets would have that of another
	purpose    = "tickflake publicid, version 1"
	checkBits  = 16
	rounds     = 10 // of FF1

	digits = "0123456789bcdfghjklmnpqrstvwxyz"
	base   = uint64(len(digits))
	half   = base * base * base * base * base * base * base * base // a value of half the characters
)

// FF1 halves the 79 bits: the first 39, and the last 40.
const (
	leftBits, rightBits = 39, 40
	leftMask, rightMask = 1<<leftBits - 1, 1<<rightBits - 1
)

// Codec has secrets, and encodes and decodes with them. It is safe for concurrent use. Make one with [New].
type Codec struct {
	newest *secret
	named  [base]*secret // by the digit that names it, or nil
}

type secret struct {
	name  byte // of digits
	block cipher.Block
	first [aes.BlockSize]byte // P, encrypted
}

// New returns a codec that encodes with newest, and decodes what was encoded with it or with an older one. To
// change the secret, first give the new one as an older one to every process, then exchange the two.
//
// A secret is at least 16 random bytes that only your servers know, such as of openssl rand 32. It is not a
// password: who knows one number and its form could try passwords. There are at most four. A new secret is
// refused if its name is that of another, as happens once in 31: make one more. The error is [ErrSecret].
func New(newest []byte, older ...[]byte) (*Codec, error) {
	c := &Codec{}
	if len(older) >= maxSecrets {
		return nil, fmt.Errorf("%w: %d of them, want at most %d", ErrSecret, 1+len(older), maxSecrets)
	}
	for i, text := range append([][]byte{newest}, older...) {
		if len(text) < minSecret {
			return nil, fmt.Errorf("%w: %d bytes, want at least %d random ones", ErrSecret, len(text), minSecret)
		}
		key, err := hkdf.Key(sha256.New, text, nil, purpose, 33)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSecret, err)
		}
		block, err := aes.NewCipher(key[:32])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSecret, err)
		}
		// P of the standard: version, method, addition, radix, rounds, u, n, and the tweak's length.
		s := &secret{digits[key[32]%byte(base)], block, [aes.BlockSize]byte{1, 2, 1, 0, 0, 2, rounds, leftBits, 0, 0, 0, leftBits + rightBits}}
		block.Encrypt(s.first[:], s.first[:])
		named := &c.named[key[32]%byte(base)]
		if *named != nil {
			return nil, fmt.Errorf("%w: number %d of %d has the name %q of another, by which forms tell their secrets apart: make another new secret, or leave out one that is given twice", ErrSecret, i+1, 1+len(older), s.name)
		}
		if *named = s; i == 0 {
			c.newest = s
		}
	}
	return c, nil
}

// Encode returns the public form of a number: 17 digits and lower-case consonants, the same at each call. A negative number
// has none, and is encoded as the empty text, which Decode refuses: no ID and no number of a sequence is negative.
func (c *Codec) Encode(number int64) string {
	if number < 0 {
		return ""
	}
	var block [aes.BlockSize]byte // of all rounds: it goes to the heap
	left, right := uint64(number)>>(rightBits-checkBits), uint64(number)<<checkBits&rightMask
	for i := byte(0); i < rounds; i += 2 {
		left = (left + c.newest.round(&block, i, right)) & leftMask
		right = (right + c.newest.round(&block, i+1, left)) & rightMask
	}
	high, low := bits.Div64(left>>(64-rightBits), left<<rightBits|right, half)
	text := [Len]byte{c.newest.name}
	for i := Len / 2; i > 0; i-- {
		text[i], text[i+Len/2] = digits[high%base], digits[low%base]
		high, low = high/base, low/base
	}
	return string(text[:])
}

// Decode returns the number of a public form, in lower or upper case. The error wraps [ErrForm], and has at most 32
// bytes of the text.
func (c *Codec) Decode(form string) (int64, error) {
	var values [Len]uint64
	valid := len(form) == Len
	for i := 0; valid && i < Len; i++ {
		symbol := form[i]
		if 'A' <= symbol && symbol <= 'Z' {
			symbol += 'a' - 'A'
		}
		digit := strings.IndexByte(digits, symbol)
		valid, values[i] = digit >= 0, uint64(digit)
	}
	if s := c.named[values[0]%base]; valid && s != nil {
		high, low := bits.Mul64(valueOf(values[1:1+Len/2]), half)
		low, carry := bits.Add64(low, valueOf(values[1+Len/2:]), 0)
		high += carry
		var block [aes.BlockSize]byte
		left, right := high<<(64-rightBits)|low>>rightBits, low&rightMask
		for i := byte(rounds); i > 0; i -= 2 {
			right = (right - s.round(&block, i-1, left)) & rightMask
			left = (left - s.round(&block, i-2, right)) & leftMask
		}
		if high>>(leftBits+rightBits-64) == 0 && right&(1<<checkBits-1) == 0 { // else the text may be above all forms
			return int64(left<<(rightBits-checkBits) | right>>checkBits), nil
		}
	}
	return 0, fmt.Errorf("%w: %.32q, want %d digits and consonants as Encode returned them", ErrForm, form, Len)
}

// valueOf is the value of digits of base 31.
func valueOf(digits []uint64) (n uint64) {
	for _, digit := range digits {
		n = n*base + digit
	}
	return n
}

// round is the function of a round of FF1 over the other half: the CBC-MAC of P and Q, of whose first 12 bytes
// the last 5 have all the bits that a half keeps.
func (s *secret) round(block *[aes.BlockSize]byte, i byte, other uint64) uint64 {
	*block = s.first
	block[aes.BlockSize-6] ^= i // Q: zeros, the round, and the other half in 5 bytes
	binary.BigEndian.PutUint64(block[8:], binary.BigEndian.Uint64(block[8:])^other)
	s.block.Encrypt(block[:], block[:])
	return binary.BigEndian.Uint64(block[4:])
}

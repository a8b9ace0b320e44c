// Package publicid gives a number another form for strangers: 16 characters that tell nothing about it.
//
// It is not for access control: whoever has seen a public form can use it, so check the rights of each request
// all the same. It is not for storage or sorting: keep the number in the database. It does not hide that two
// forms are of one number. And without the secret a form is lost.
//
// An ID shows when it was issued, and an order number shows how many orders there are. Their public forms show
// neither, and from any number of forms nobody can tell another one. A typing error or a guess is refused, but for
// 1 in 65,536 with each secret.
//
// You need these names: [New], [Codec.Encode] and [Codec.Decode]. Every int64 that is not negative has a public
// form, so IDs and the numbers of sequences do.
//
// # The form
//
// The 63 bits of the number, and 16 zero bits as a check, go through FF1 of NIST SP 800-38G: AES-256, radix 2,
// 79 digits, an empty tweak. Its key is HKDF-SHA256 of the secret, without a salt, for the purpose
// "tickflake publicid, version 1". The result is written in base 31, by the digits and the consonants, so that no
// form is a word.
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
	// ErrSecret says that a secret of [New] is too short, or that there are too many.
	ErrSecret = errors.New("publicid: unusable secret")

	// ErrForm says that a text is the public form of no number under these secrets: a typing error, a
	// guess, or a form under a secret that is not among them.
	ErrForm = errors.New("publicid: no public form under these secrets")
)

const (
	// Len is the length of a public form in characters.
	Len = 16

	minSecret  = 16 // bytes
	maxSecrets = 4  // each lets as many guesses pass
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
	ciphers []cipher.Block // of the newest secret first
	first   [][aes.BlockSize]byte
}

// New returns a codec that encodes with secret, and decodes what was encoded with it or with an older one. To
// change the secret, first give the new one as an older one to every process, then exchange the two.
//
// A secret is at least 16 random bytes that only your servers know, such as of openssl rand 32. It is not a
// password: who knows one number and its form could try passwords. There are at most four; the error is
// [ErrSecret].
func New(secret []byte, older ...[]byte) (*Codec, error) {
	c := &Codec{}
	if len(older) >= maxSecrets {
		return nil, fmt.Errorf("%w: %d of them, want at most %d", ErrSecret, 1+len(older), maxSecrets)
	}
	for _, s := range append([][]byte{secret}, older...) {
		if len(s) < minSecret {
			return nil, fmt.Errorf("%w: %d bytes, want at least %d random ones", ErrSecret, len(s), minSecret)
		}
		key, err := hkdf.Key(sha256.New, s, nil, purpose, 32)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSecret, err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSecret, err)
		}
		// P of the standard: version, method, addition, radix, rounds, u, n, and the tweak's length.
		first := [aes.BlockSize]byte{1, 2, 1, 0, 0, 2, rounds, leftBits, 0, 0, 0, leftBits + rightBits}
		block.Encrypt(first[:], first[:])
		c.ciphers, c.first = append(c.ciphers, block), append(c.first, first)
	}
	return c, nil
}

// Encode returns the public form of a number: 16 digits and lower-case consonants, the same at each call. A negative number
// has none, and is encoded as the empty text, which Decode refuses: no ID and no number of a sequence is negative.
func (c *Codec) Encode(number int64) string {
	if number < 0 {
		return ""
	}
	var block [aes.BlockSize]byte // of all rounds: it goes to the heap
	left, right := uint64(number)>>(rightBits-checkBits), uint64(number)<<checkBits&rightMask
	for i := byte(0); i < rounds; i += 2 {
		left = (left + c.round(&block, 0, i, right)) & leftMask
		right = (right + c.round(&block, 0, i+1, left)) & rightMask
	}
	high, low := bits.Div64(left>>(64-rightBits), left<<rightBits|right, half)
	var text [Len]byte
	for i := Len/2 - 1; i >= 0; i-- {
		text[i], text[i+Len/2] = digits[high%base], digits[low%base]
		high, low = high/base, low/base
	}
	return string(text[:])
}

// Decode returns the number of a public form, in lower or upper case. It tries the secrets in their order, the
// newest first. The error wraps [ErrForm], and has at most 32 bytes of the text.
func (c *Codec) Decode(form string) (int64, error) {
	var halves [2]uint64
	valid := len(form) == Len
	for i := 0; valid && i < Len; i++ {
		symbol := form[i]
		if 'A' <= symbol && symbol <= 'Z' {
			symbol += 'a' - 'A'
		}
		digit := strings.IndexByte(digits, symbol)
		valid = digit >= 0
		halves[i/(Len/2)] = halves[i/(Len/2)]*base + uint64(digit)
	}
	high, low := bits.Mul64(halves[0], half)
	low, carry := bits.Add64(low, halves[1], 0)
	high += carry
	if valid = valid && high>>(leftBits+rightBits-64) == 0; valid { // or the text is above all forms
		var block [aes.BlockSize]byte
		for key := range c.ciphers {
			left, right := high<<(64-rightBits)|low>>rightBits, low&rightMask
			for i := byte(rounds); i > 0; i -= 2 {
				right = (right - c.round(&block, key, i-1, left)) & rightMask
				left = (left - c.round(&block, key, i-2, right)) & leftMask
			}
			if right&(1<<checkBits-1) == 0 {
				return int64(left<<(rightBits-checkBits) | right>>checkBits), nil
			}
		}
	}
	return 0, fmt.Errorf("%w: %.32q, want %d digits and consonants as Encode returned them", ErrForm, form, Len)
}

// round is the function of a round of FF1 over the other half: the CBC-MAC of P and Q, of whose first 12 bytes
// the last 5 have all the bits that a half keeps.
func (c *Codec) round(block *[aes.BlockSize]byte, key int, i byte, other uint64) uint64 {
	*block = c.first[key]
	block[aes.BlockSize-6] ^= i // Q: zeros, the round, and the other half in 5 bytes
	binary.BigEndian.PutUint64(block[8:], binary.BigEndian.Uint64(block[8:])^other)
	c.ciphers[key].Encrypt(block[:], block[:])
	return binary.BigEndian.Uint64(block[4:])
}

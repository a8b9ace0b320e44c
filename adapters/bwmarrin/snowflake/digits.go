package snowflake

import "math/bits"

// alphabet is a set of digits for numbers, the smallest first.
type alphabet struct {
	digits string
	value  [256]uint8 // of a digit, plus 1; 0 for other bytes
}

var (
	zBase32  = newAlphabet("ybndrfg8ejkmcpqxot1uwisza345h769")
	flickr58 = newAlphabet("123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ")
)

func newAlphabet(digits string) *alphabet {
	a := &alphabet{digits: digits}
	for i := range len(digits) {
		a.value[digits[i]] = uint8(i) + 1
	}
	return a
}

func (a *alphabet) format(n uint64) string {
	var text [13]byte // 64 bits in base 32
	base, first := uint64(len(a.digits)), len(text)
	for {
		first--
		text[first] = a.digits[n%base]
		if n /= base; n == 0 {
			return string(text[first:])
		}
	}
}

// parse reads a number of at least one digit, and reports whether text is one of at most
// 64 bits.
func (a *alphabet) parse(text []byte) (n uint64, ok bool) {
	for _, c := range text {
		if a.value[c] == 0 {
			return 0, false
		}
		high, low := bits.Mul64(n, uint64(len(a.digits)))
		sum, carry := bits.Add64(low, uint64(a.value[c]-1), 0)
		if high+carry > 0 {
			return 0, false
		}
		n = sum
	}
	return n, len(text) > 0
}

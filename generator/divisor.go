package generator

import "math/bits"

// divisor divides by a number that is fixed, but known only at run time. It takes about
// as long as a multiplication: 1 ns, where the division instruction takes 4. It follows
// Granlund and Montgomery, "Division by Invariant Integers using
// Multiplication", PLDI 1994, theorem 4.2, for dividends below 2^63.
type divisor struct {
	multiplier uint64 // floor(2^(63+shift) / d) + 1
	shift      uint8  // the number of bits that hold d-1
}

// newDivisor returns the divisor for d, which must be from 1 to 2^62.
func newDivisor(d uint64) divisor {
	shift := bits.Len64(d - 1)
	if shift == 0 {
		return divisor{multiplier: 1<<63 + 1}
	}
	// d is above 2^(shift-1), so the quotient fits in 64 bits.
	quotient, _ := bits.Div64(1<<(shift-1), 0, d)
	return divisor{multiplier: quotient + 1, shift: uint8(shift)}
}

// quotient returns n / d for n below 2^63.
func (v divisor) quotient(n uint64) uint64 {
	high, _ := bits.Mul64(n<<1, v.multiplier)
	return high >> (v.shift & 63)
}

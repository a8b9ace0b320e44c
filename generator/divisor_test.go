package generator

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDivisor(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	divisors := []uint64{1, 2, 3, 7, 10, 1 << 20, 1<<20 + 1, 1<<62 - 1, 1 << 62,
		uint64(time.Microsecond), uint64(time.Millisecond), uint64(10 * time.Millisecond), uint64(time.Second), uint64(time.Hour)}
	for range 200 {
		divisors = append(divisors, 1+random.Uint64N(1<<62)>>random.UintN(62))
	}
	for _, d := range divisors {
		v := newDivisor(d)
		check := func(n uint64) {
			require.Equal(t, n/d, v.quotient(n), "%d / %d", n, d)
		}
		// Where rounding goes wrong if it does: at and around multiples, and at
		// the ends.
		for _, n := range []uint64{0, 1, d - 1, d, d + 1, math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / d * d, math.MaxInt64/d*d - 1} {
			check(n)
		}
		for range 200 {
			multiple := d * random.Uint64N(math.MaxInt64/d+1)
			check(multiple)
			check(max(multiple, 1) - 1)
			check(random.Uint64N(1 << 63))
		}
	}
}

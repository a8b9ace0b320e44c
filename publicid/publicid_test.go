package publicid_test

import (
	"fmt"
	"log"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/publicid"
	"github.com/tickflake/tickflake/snowflake"
)

func Example() {
	secret := []byte("correct horse battery staple") // of the environment or a file; better 32 random bytes
	public, err := publicid.New(secret)
	if err != nil {
		log.Fatal(err)
	}
	id := snowflake.ID(250328893980934144)
	form := public.Encode(id.Int64()) // for a link or a letter
	fmt.Println(form)

	number, err := public.Decode("NBVQV" + form[5:]) // of a request
	fmt.Println(snowflake.ID(number), err)
	_, err = public.Decode("nbvqvfgnz4k8x6mxq")
	fmt.Println(err)
	// Output:
	// nbvqvfgnz4k8x6mxp
	// 250328893980934144 <nil>
	// publicid: no public form under these secrets: "nbvqvfgnz4k8x6mxq", want 17 digits and consonants as Encode returned them
}

func codec(t testing.TB, secret string, older ...string) *publicid.Codec {
	t.Helper()
	var bytes [][]byte
	for _, s := range older {
		bytes = append(bytes, []byte(s))
	}
	c, err := publicid.New([]byte(secret), bytes...)
	require.NoError(t, err)
	return c
}

const digits = "0123456789bcdfghjklmnpqrstvwxyz"

const newer, old = "correct horse battery staple", "0123456789abcdef"

// known has forms that others' code made: the key and the name by HKDF of Python's cryptography 48.0.0, FF1 by
// github.com/capitalone/fpe v1.2.1 with radix 2 over the 63 bits and 16 zeros, and base 31 by math/big.
var known = map[string]map[int64]string{
	newer: {
		0: "n7cvmbm7y0h25c1km", 1: "nk7fs3zf08s6x1vs4", 2: "n1b744gl14ghbrzt8", 4711: "n655qzhmyq2kz4fhm",
		250328893980934144: "nbvqvfgnz4k8x6mxp", math.MaxInt64: "nf2l10zttr55tthtz",
	},
	old: {
		0: "dlsy52bpcqvs1m9lj", 1: "dlccj47wmspxtrcsl", 2: "dh3bz85lgbm0ycn6b", 4711: "d0yzc1sz1mrqcjxrr",
		250328893980934144: "dqd2fl0m3lsqrckgm", math.MaxInt64: "d9gkrqn00yfn86y3z",
	},
}

func TestKnownAnswers(t *testing.T) {
	for secret, forms := range known {
		c := codec(t, secret)
		for number, form := range forms {
			assert.Equal(t, form, c.Encode(number))
			for _, text := range []string{form, strings.ToUpper(form)} {
				back, err := c.Decode(text)
				require.NoError(t, err)
				assert.Equal(t, number, back)
			}
		}
	}
}

// The newest secret encodes, and each decodes its own forms alone, of which 1 in 65,536 would pass the check of
// another; a secret that was dropped does not.
func TestSecrets(t *testing.T) {
	c, before := codec(t, newer, old), codec(t, old)
	assert.Equal(t, known[newer][4711], c.Encode(4711))
	for number := range int64(400_000) {
		back, err := c.Decode(before.Encode(number))
		if err != nil || back != number {
			require.Equal(t, number, back, "%v", err)
		}
	}
	_, err := codec(t, newer).Decode(known[old][4711])
	require.ErrorIs(t, err, publicid.ErrForm)

	twin := 0 // a secret with the name of newer
	for twin = range math.MaxInt {
		if codec(t, fmt.Sprintf("%s %d", old, twin)).Encode(0)[0] == known[newer][0][0] {
			break
		}
	}
	_, err = publicid.New([]byte(newer), []byte(old), fmt.Appendf(nil, "%s %d", old, twin))
	require.ErrorIs(t, err, publicid.ErrSecret)
	require.ErrorContains(t, err, `number 3 of 3 has the name 'n' of another`)

	long := []byte(newer)
	for name, secrets := range map[string][][]byte{
		"none": {nil}, "short": {long[:15]}, "older short": {long, long[:15]}, "five": {long, long, long, long, long},
	} {
		_, err := publicid.New(secrets[0], secrets[1:]...)
		assert.ErrorIs(t, err, publicid.ErrSecret, name)
	}
	assert.Empty(t, c.Encode(-1))
}

func TestRefuses(t *testing.T) {
	c := codec(t, newer)
	for _, text := range []string{"", "0", known[newer][1][1:], known[newer][1] + "0", known[newer][1][1:] + "n", "nk7fs3zf08s6x1vsa",
		"nk7fs3zf08s6x1vs\xb4", "\xb4k7fs3zf08s6x1vs4", "nk7fs3zf08s6x1v 4", "nzzzzzzzzzzzzzzzz", "nzzzzzzzzz0031337" /* 2^79 more than a form */, strings.Repeat("0", 1_000_000)} {
		number, err := c.Decode(text)
		require.ErrorIs(t, err, publicid.ErrForm)
		assert.Zero(t, number)
		assert.Less(t, len(err.Error()), 200)
	}
}

// value returns the 79 bits of a form.
func value(form string) (high, low uint64) {
	for _, c := range []byte(form[1:]) {
		carry, product := bits.Mul64(low, 31)
		sum, over := bits.Add64(product, uint64(strings.IndexByte(digits, c)), 0)
		high, low = high*31+carry+over, sum
	}
	return high, low
}

// The forms of two neighbours differ in each of the 79 bits half of the time, and in no pair of bits together.
// With 20,000 pairs a share is wrong by 0.0035 (one standard deviation), and six of them are never seen.
func TestNeighboursHaveNothingInCommon(t *testing.T) {
	c := codec(t, newer)
	const pairs = 20_000
	for _, distance := range []int64{1, 1 << 12, 1 << 22, 1 << 47} {
		var differ, withNext [79]int
		for i := range int64(pairs) {
			number := 250328893980934144 + i
			high1, low1 := value(c.Encode(number))
			high2, low2 := value(c.Encode(number ^ distance))
			high, low := high1^high2, low1^low2
			for bit := range differ {
				differ[bit] += int(low & 1)
				withNext[bit] += int(low & (low >> 1) & 1)
				low, high = low>>1|high<<63, high>>1
			}
		}
		for bit := range differ {
			assert.InDelta(t, 0.5, float64(differ[bit])/pairs, 6*0.0035, "distance %d, bit %d", distance, bit)
			if bit < 78 {
				assert.InDelta(t, 0.25, float64(withNext[bit])/pairs, 6*0.0031, "distance %d, bits %d and %d", distance, bit, bit+1)
			}
		}
	}
}

// Of guesses, and of forms with one wrong character, 1 in 65,536 passes, however many secrets there are. (Of all texts,
// 83% are a value of 79 bits.)
func TestFewGuessesPass(t *testing.T) {
	c := codec(t, newer, old, newer+"3", newer+"4")
	random := rand.New(rand.NewPCG(1, 2))
	const guesses = 400_000
	passed := 0
	for range guesses {
		form := []byte(c.Encode(random.Int64()))
		for i := 1 + random.IntN(publicid.Len-1); i > 0; i-- {
			form[i] = digits[(strings.IndexByte(digits, form[i])+1+random.IntN(30))%31]
		}
		if _, err := c.Decode(string(form)); err == nil {
			passed++
		}
	}
	assert.InDelta(t, guesses*0.83/65536, passed, 12) // 5, of a standard deviation of 2.3
}

// Each number comes back, and each text that is read is the form of the number, in lower case, under some secret.
func FuzzDecode(f *testing.F) {
	for number, form := range known[newer] {
		f.Add(number, form)
	}
	f.Add(int64(1), "nzzzzzzzzzzzzzzzz")
	c, other := codec(f, newer, old), codec(f, old)
	f.Fuzz(func(t *testing.T, number int64, text string) {
		number &= math.MaxInt64
		back, err := c.Decode(c.Encode(number))
		require.NoError(t, err)
		require.Equal(t, number, back)
		if back, err = c.Decode(text); err == nil {
			require.Contains(t, []string{c.Encode(back), other.Encode(back)}, strings.ToLower(text))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	c := codec(b, newer)
	for n := int64(250328893980934144); b.Loop(); n++ {
		c.Encode(n)
	}
}

func BenchmarkDecode(b *testing.B) {
	c := codec(b, newer)
	form := c.Encode(250328893980934144)
	for b.Loop() {
		_, _ = c.Decode(form)
	}
}

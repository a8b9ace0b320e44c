package snowflake_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

// idForm is one fixed-width form as its documentation defines it, written down
// apart from the implementation.
type idForm struct {
	name     string
	alphabet string
	accepted string // read beside the alphabet
	width    int
	format   func(snowflake.ID) string
	parse    func(string) (snowflake.ID, error)
}

var idForms = []idForm{
	{
		name:     "base32",
		alphabet: "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
		accepted: "abcdefghjkmnpqrstvwxyzIiLlOo",
		width:    13,
		format:   snowflake.ID.Base32,
		parse:    snowflake.ParseBase32,
	},
	{
		name:     "base58",
		alphabet: "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
		width:    11,
		format:   snowflake.ID.Base58,
		parse:    snowflake.ParseBase58,
	},
	{
		name:     "base62",
		alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
		width:    11,
		format:   snowflake.ID.Base62,
		parse:    snowflake.ParseBase62,
	},
}

// text writes n by long division, padded to the width; it may come out longer.
func (f *idForm) text(n *big.Int) string {
	base, digit := big.NewInt(int64(len(f.alphabet))), new(big.Int)
	s := ""
	for n = new(big.Int).Set(n); n.Sign() > 0; {
		n.DivMod(n, base, digit)
		s = f.alphabet[digit.Int64():][:1] + s
	}
	return strings.Repeat(f.alphabet[:1], max(0, f.width-len(s))) + s
}

func TestFormsKnownValues(t *testing.T) {
	for _, tc := range []struct {
		id                     snowflake.ID
		base32, base58, base62 string
	}{
		{0, "0000000000000", "11111111111", "00000000000"},
		{1, "0000000000001", "11111111112", "00000000001"},
		{175928847299117063, "04W86BB0G4007", "1QgmVVkniES", "0Czks0tP37X"},
		{tweetID, "1ASD13XH1F800", "4aaW4SzAyQK", "1ptWyK4WgZU"},
		{2384288897814875714, "225NJ3TY2KKJ2", "6Y15jJd9Psw", "2q84F6woT7C"},
		{largestID, "7ZZZZZZZZZZZZ", "NQm6nKp8qFC", "AzL8n0Y58m7"},
		// What no generator issues is written as the same bits, unsigned.
		{math.MinInt64, "8000000000000", "NQm6nKp8qFD", "AzL8n0Y58m8"},
		{-5, "FZZZZZZZZZZZV", "jpXCZedGfVL", "LygHa16AHYB"},
		{-1, "FZZZZZZZZZZZZ", "jpXCZedGfVQ", "LygHa16AHYF"},
	} {
		for i, want := range []string{tc.base32, tc.base58, tc.base62} {
			form := idForms[i]
			require.Equal(t, want, form.format(tc.id))
			got, err := form.parse(want)
			if tc.id < 0 {
				requireRefused(t, err, form.name, snowflake.ErrRange, -1)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, tc.id, got)
		}
	}
}

func TestFormsRoundTripAndSort(t *testing.T) {
	for _, form := range idForms {
		t.Run(form.name, func(t *testing.T) {
			before, beforeText := snowflake.ID(0), form.format(0)
			for _, id := range randomIDs(5000) {
				text := form.format(id)
				require.Equal(t, form.text(big.NewInt(int64(id))), text)
				require.Equal(t, before < id, beforeText < text, "%d %d", before, id)
				got, err := form.parse(text)
				require.NoError(t, err)
				require.Equal(t, id, got)
				before, beforeText = id, text
			}
		})
	}
}

// A shorter width could not hold 64 bits, and a longer one would waste room.
func TestFormsAreAsShortAsCanBe(t *testing.T) {
	for _, form := range idForms {
		require.Len(t, form.format(largestID), form.width)
		require.NotEqual(t, form.alphabet[0], form.format(largestID)[0])
		require.Equal(t, form.text(new(big.Int).SetUint64(math.MaxUint64)), form.format(-1))
	}
}

func TestFormsRefuseTooLarge(t *testing.T) {
	for _, form := range idForms {
		for _, n := range tooLargeNumbers() {
			text := form.text(n)
			cause := snowflake.ErrRange
			if len(text) > form.width {
				cause = snowflake.ErrLength
			}
			_, err := form.parse(text)
			requireRefused(t, err, form.name, cause, -1)
		}
		last := form.alphabet[len(form.alphabet)-1:]
		_, err := form.parse(strings.Repeat(last, form.width))
		requireRefused(t, err, form.name, snowflake.ErrRange, -1)
	}
}

func TestFormsRefuseEveryWrongLength(t *testing.T) {
	for _, form := range idForms {
		for n := range 200 {
			if n == form.width {
				continue
			}
			id, err := form.parse(strings.Repeat(form.alphabet[:1], n))
			requireRefused(t, err, form.name, snowflake.ErrLength, -1)
			require.Zero(t, id)
		}
		_, err := form.parse(strings.Repeat("?", 1<<20))
		requireRefused(t, err, form.name, snowflake.ErrLength, -1)
	}
}

func TestFormsRefuseEveryBadByteEverywhere(t *testing.T) {
	for _, form := range idForms {
		good := form.alphabet + form.accepted
		for pos := range form.width {
			for c := range 256 {
				text := []byte(form.format(tweetID))
				text[pos] = byte(c)
				id, err := form.parse(string(text))
				if strings.IndexByte(good, byte(c)) < 0 {
					requireRefused(t, err, form.name, snowflake.ErrSyntax, pos)
					require.Zero(t, id)
				} else if err != nil {
					requireRefused(t, err, form.name, snowflake.ErrRange, -1)
				}
			}
		}
		// The bad byte is what to report, even behind a number too large already.
		last := form.alphabet[len(form.alphabet)-1:]
		_, err := form.parse(strings.Repeat(last, form.width-1) + "-")
		requireRefused(t, err, form.name, snowflake.ErrSyntax, form.width-1)
	}
}

func TestParseBase32ReadsWhatPeopleWrite(t *testing.T) {
	for text, same := range map[string]string{
		"1asd13xh1f800": "1ASD13XH1F800",
		"iasDI3xHlF8oO": "1ASD13XH1F800",
		"LASDL3XHIF8OO": "1ASD13XH1F800",
		"7zzzzzzzzzzzz": "7ZZZZZZZZZZZZ",
		"0abcdefghjkmn": "0ABCDEFGHJKMN",
		"0pqrstvwxyz00": "0PQRSTVWXYZ00",
	} {
		got, err := snowflake.ParseBase32(text)
		require.NoError(t, err)
		require.Equal(t, same, got.Base32())
	}
	for _, u := range []string{"u", "U"} {
		_, err := snowflake.ParseBase32("000000" + u + "000000")
		requireRefused(t, err, "base32", snowflake.ErrSyntax, 6)
	}
	_, err := snowflake.ParseBase32("1ASD-13XH-1F8") // 13 characters, two of them hyphens
	requireRefused(t, err, "base32", snowflake.ErrSyntax, 4)
}

// tooLargeNumbers are numbers just above the largest ID, and numbers whose low
// 64 bits look harmless, which arithmetic that wraps would let through.
func tooLargeNumbers() []*big.Int {
	one := big.NewInt(1)
	var ns []*big.Int
	for shift := uint(63); shift < 200; shift++ {
		n := new(big.Int).Lsh(one, shift)
		ns = append(ns, n, new(big.Int).Add(n, one), new(big.Int).Add(n, big.NewInt(int64(tweetID))))
	}
	for exp := int64(19); exp < 60; exp++ {
		ns = append(ns, new(big.Int).Exp(big.NewInt(10), big.NewInt(exp), nil))
	}
	return ns
}

func TestParseMessages(t *testing.T) {
	scan := func(src any) error { return new(snowflake.ID).Scan(src) }
	unmarshal := func(s string) error { return new(snowflake.ID).UnmarshalJSON([]byte(s)) }
	fromBytes := func(s string) error { _, err := snowflake.FromBytes([]byte(s)); return err }
	parse := func(f func(string) (snowflake.ID, error), s string) error { _, err := f(s); return err }

	for want, err := range map[string]error{
		`decimal ID: wrong length: empty, want 1 to 19 digits`:                                   parse(snowflake.Parse, ""),
		`decimal ID "12a": malformed: bad character "a" at offset 2`:                             parse(snowflake.Parse, "12a"),
		`decimal ID "1\xff": malformed: bad character "\xff" at offset 1`:                        parse(snowflake.Parse, "1\xff"),
		`decimal ID "007": malformed: leading zero at offset 0`:                                  parse(snowflake.Parse, "007"),
		`decimal ID "9223372036854775808": out of range: exceeds 9223372036854775807`:            parse(snowflake.Parse, "9223372036854775808"),
		`base32 ID "123": wrong length: length 3, want 13`:                                       parse(snowflake.ParseBase32, "123"),
		`base58 ID "1111111111l": malformed: bad character "l" at offset 10`:                     parse(snowflake.ParseBase58, "1111111111l"),
		`base62 ID "zzzzzzzzzzz": out of range: exceeds 9223372036854775807`:                     parse(snowflake.ParseBase62, "zzzzzzzzzzz"),
		`binary ID "ab": wrong length: length 2, want 8`:                                         fromBytes("ab"),
		`JSON ID "1.5": malformed: bad character "." at offset 1`:                                unmarshal("1.5"),
		`JSON ID "true": wrong type: want a string of digits or an integer`:                      unmarshal("true"),
		`SQL ID "-5": out of range: is negative`:                                                 scan(int64(-5)),
		`SQL ID "9223372036854775808": out of range: exceeds 9223372036854775807`:                scan(uint64(1 << 63)),
		`SQL ID: wrong type: type float64, want int64, uint64, string or []byte`:                 scan(1.5),
		`SQL ID: wrong type: type time.Time, want int64, uint64, string or []byte`:               scan(time.Time{}),
		`SQL ID: wrong type: NULL; scan into sql.Null[ID] if the column may be NULL`:             scan(nil),
		`base58 ID "` + strings.Repeat("x", 64) + `"…: wrong length: length 1048576, want 11`:    parse(snowflake.ParseBase58, strings.Repeat("x", 1<<20)),
		`decimal ID "` + strings.Repeat("x", 64) + `": malformed: bad character "x" at offset 0`: parse(snowflake.Parse, strings.Repeat("x", 64)),
	} {
		assert.EqualError(t, err, want)
	}
}

func TestIDAllocations(t *testing.T) {
	id, text, raw := tweetID, []byte(tweetID.String()), tweetID.Bytes()
	quoted := []byte(`"` + tweetID.String() + `"`)
	b32, b58, b62 := id.Base32(), id.Base58(), id.Base62()
	buf := make([]byte, 0, 64)
	var asText, asBytes any = id.String(), text
	var sink string
	var got snowflake.ID
	for _, tc := range []struct {
		name string
		want float64
		f    func()
	}{
		{"String", 1, func() { sink = id.String() }},
		{"Base32", 1, func() { sink = id.Base32() }},
		{"Base58", 1, func() { sink = id.Base58() }},
		{"Base62", 1, func() { sink = id.Base62() }},
		{"AppendText", 0, func() { _, _ = id.AppendText(buf) }},
		{"AppendBinary", 0, func() { _, _ = id.AppendBinary(buf) }},
		{"MarshalJSON", 1, func() { _, _ = id.MarshalJSON() }},
		{"Parse", 0, func() { got, _ = snowflake.Parse(string(text)) }},
		{"ParseBase32", 0, func() { got, _ = snowflake.ParseBase32(b32) }},
		{"ParseBase58", 0, func() { got, _ = snowflake.ParseBase58(b58) }},
		{"ParseBase62", 0, func() { got, _ = snowflake.ParseBase62(b62) }},
		{"FromBytes", 0, func() { got, _ = snowflake.FromBytes(raw[:]) }},
		{"UnmarshalText", 0, func() { _ = got.UnmarshalText(text) }},
		{"UnmarshalJSON", 0, func() { _ = got.UnmarshalJSON(quoted) }},
		{"Scan string", 0, func() { _ = got.Scan(asText) }},
		{"Scan bytes", 0, func() { _ = got.Scan(asBytes) }},
	} {
		got = id
		assert.LessOrEqual(t, testing.AllocsPerRun(100, tc.f), tc.want, tc.name)
		assert.Equal(t, id, got, tc.name)
	}
	require.NotEmpty(t, sink)
}

func TestNegativeID(t *testing.T) {
	for _, id := range []snowflake.ID{-1, -5, math.MinInt64} {
		text := strconv.FormatInt(int64(id), 10)
		require.Equal(t, text, id.String())
		require.Equal(t, text, id.LogValue().String())
		require.Equal(t, int64(id), id.Int64())

		b, err := id.AppendText([]byte("id="))
		require.ErrorIs(t, err, snowflake.ErrRange)
		require.ErrorContains(t, err, text)
		require.Equal(t, "id=", string(b))
		b, err = id.AppendBinary([]byte("id="))
		require.ErrorIs(t, err, snowflake.ErrRange)
		require.Equal(t, "id=", string(b))
		_, err = id.MarshalText()
		require.ErrorIs(t, err, snowflake.ErrRange)
		_, err = id.MarshalBinary()
		require.ErrorIs(t, err, snowflake.ErrRange)
		_, err = json.Marshal(id)
		require.ErrorIs(t, err, snowflake.ErrRange)
		_, err = id.Value()
		require.ErrorIs(t, err, snowflake.ErrRange)

		raw := id.Bytes()
		require.Equal(t, new(big.Int).SetUint64(uint64(id)), new(big.Int).SetBytes(raw[:]))
		_, err = snowflake.FromBytes(raw[:])
		requireRefused(t, err, "binary", snowflake.ErrRange, -1)
	}
}

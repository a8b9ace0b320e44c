package snowflake_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
)

// forms of a few IDs, as version 0.3.0 of the original package writes them. The module
// examples/migrate compares the two packages on any number of others.
var forms = []struct {
	id                                     int64
	base2, base32, base36, base58, base64_ string
}{
	{0, "0", "y", "0", "1", "MA=="},
	{1, "1", "b", "1", "2", "MQ=="},
	{57, "111001", "b3", "1l", "Z", "NTc="},
	{13587, "11010100010011", "peu", "ahf", "53g", "MTM1ODc="},
	{1116766490855473152, "111101111111100011010011010011100000100000000000000000000000", "69hpguoeyyyy", "8hg4ojd30u80", "3Amry1HHf7U", "MTExNjc2NjQ5MDg1NTQ3MzE1Mg=="},
	{math.MaxInt64, strings.Repeat("1", 63), "8999999999999", "1y2p0ij32e8e7", "npL6MjP8Qfc", "OTIyMzM3MjAzNjg1NDc3NTgwNw=="},
}

func TestForms(t *testing.T) {
	for _, f := range forms {
		id := snowflake.ParseInt64(f.id)
		assert.Equal(t, f.id, id.Int64())
		check := func(name, want, got string, parse func(string) (snowflake.ID, error)) {
			t.Helper()
			assert.Equal(t, want, got, "%s of %d", name, f.id)
			back, err := parse(want)
			require.NoError(t, err, "%s of %d", name, f.id)
			assert.Equal(t, id, back, name)
		}
		check("Base2", f.base2, id.Base2(), snowflake.ParseBase2)
		check("Base32", f.base32, id.Base32(), bytesOf(snowflake.ParseBase32))
		check("Base36", f.base36, id.Base36(), snowflake.ParseBase36)
		check("Base58", f.base58, id.Base58(), bytesOf(snowflake.ParseBase58))
		check("Base64", f.base64_, id.Base64(), snowflake.ParseBase64)
		check("Bytes", id.String(), string(id.Bytes()), bytesOf(snowflake.ParseBytes))
		check("String", string(id.Bytes()), id.String(), snowflake.ParseString)
	}
}

func bytesOf(parse func([]byte) (snowflake.ID, error)) func(string) (snowflake.ID, error) {
	return func(text string) (snowflake.ID, error) { return parse([]byte(text)) }
}

func TestRefusesWhatIsNoID(t *testing.T) {
	for name, parse := range map[string]func(string) (snowflake.ID, error){
		"String": snowflake.ParseString, "Base2": snowflake.ParseBase2, "Base36": snowflake.ParseBase36,
		"Base64": snowflake.ParseBase64, "Bytes": bytesOf(snowflake.ParseBytes),
		"Base32": bytesOf(snowflake.ParseBase32), "Base58": bytesOf(snowflake.ParseBase58),
	} {
		for _, text := range []string{"", " ", "\xff\xff\xff111682167957041", "1112316766490855473152111231676649085547315211123167664908554731521", "!", "1 2", "0.5"} {
			_, err := parse(text)
			assert.Error(t, err, "%s %q", name, text)
		}
	}
}

// The original reads these as other numbers.
func TestRefusesForeignDigits(t *testing.T) {
	for _, text := range []string{"", "l", "2", "v", "yyyl", "bbbbbbbbbbbbbb", "oyyyyyyyyyyyy", "9999999999999"} {
		id, err := snowflake.ParseBase32([]byte(text))
		assert.ErrorIs(t, err, snowflake.ErrInvalidBase32, "%q", text)
		assert.EqualValues(t, -1, id)
	}
	for _, text := range []string{"", "0", "O", "I", "l", "222222222222", "JPwcyDCgEuq" /* 2^64 */, "ZZZZZZZZZZZ"} {
		id, err := snowflake.ParseBase58([]byte(text))
		assert.ErrorIs(t, err, snowflake.ErrInvalidBase58, "%q", text)
		assert.EqualValues(t, -1, id)
	}
}

// Any 64 bits have all forms, and come back.
func TestNegativeNumbers(t *testing.T) {
	for _, n := range []int64{-1, math.MinInt64} {
		id := snowflake.ID(n)
		b32, err := snowflake.ParseBase32([]byte(id.Base32()))
		require.NoError(t, err)
		b58, err := snowflake.ParseBase58([]byte(id.Base58()))
		require.NoError(t, err)
		assert.Equal(t, []snowflake.ID{id, id}, []snowflake.ID{b32, b58})
	}
	assert.Equal(t, "JPwcyDCgEup", snowflake.ID(-1).Base58())
}

func TestIntBytes(t *testing.T) {
	assert.Equal(t, [8]byte{0, 0, 0, 0, 0, 0, 0x35, 0x13}, snowflake.ID(13587).IntBytes())
	b := [8]byte{0xf, 0x7f, 0xc0, 0xfc, 0x2f, 0x80, 0, 0}
	assert.Equal(t, snowflake.ID(1116823421972381696), snowflake.ParseIntBytes(b))
	assert.Equal(t, b, snowflake.ID(1116823421972381696).IntBytes())
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal(map[string]snowflake.ID{"id": 13587})
	require.NoError(t, err)
	assert.Equal(t, `{"id":"13587"}`, string(text))
	var back map[string]snowflake.ID
	require.NoError(t, json.Unmarshal(text, &back))
	assert.EqualValues(t, 13587, back["id"])

	for _, bad := range []string{`1`, `null`, `""`, `"invalid`, `{}`, `true`, `"`, ``} {
		id := snowflake.ID(7)
		var syntax snowflake.JSONSyntaxError
		assert.ErrorAs(t, id.UnmarshalJSON([]byte(bad)), &syntax, "%s", bad)
		assert.EqualValues(t, 7, id)
	}
	id := snowflake.ID(7)
	err = id.UnmarshalJSON([]byte(`"9223372036854775808"`))
	assert.ErrorContains(t, err, "out of range")
	assert.EqualValues(t, 7, id)
	assert.Less(t, len(snowflake.JSONSyntaxError{}.Error()), 200)
}

func FuzzParse(f *testing.F) {
	for _, seed := range forms {
		f.Add(seed.base32)
		f.Add(seed.base58)
		f.Add(seed.base64_)
	}
	f.Add(`"13587"`)
	f.Fuzz(func(t *testing.T, text string) {
		// Every text that is read is written back, without leading zeros.
		if id, err := snowflake.ParseBase32([]byte(text)); err == nil {
			assert.Equal(t, orZero(strings.TrimLeft(text, "y"), "y"), id.Base32())
		}
		if id, err := snowflake.ParseBase58([]byte(text)); err == nil {
			assert.Equal(t, orZero(strings.TrimLeft(text, "1"), "1"), id.Base58())
		}
		if id, err := snowflake.ParseBase64(text); err == nil {
			again, err := snowflake.ParseBase64(id.Base64())
			assert.NoError(t, err)
			assert.Equal(t, id, again)
		}
		var id snowflake.ID
		if err := id.UnmarshalJSON([]byte(text)); err == nil {
			again, err := json.Marshal(id)
			require.NoError(t, err)
			var back snowflake.ID
			require.NoError(t, json.Unmarshal(again, &back))
			assert.Equal(t, id, back)
		}
	})
}

func orZero(text, zero string) string {
	if text == "" {
		return zero
	}
	return text
}

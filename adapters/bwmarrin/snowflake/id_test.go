package snowflake_test

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
)

// forms are the text forms, and how version 0.3.0 of the original writes 0, 57, 13587 and two large IDs.
var forms = []struct {
	name  string
	write func(snowflake.ID) string
	parse func(string) (snowflake.ID, error)
	known []string
}{
	{"String", snowflake.ID.String, snowflake.ParseString, []string{"0", "57", "13587", "1116766490855473152", "9223372036854775807"}},
	{"Bytes", func(id snowflake.ID) string { return string(id.Bytes()) }, bytesOf(snowflake.ParseBytes), []string{"0", "57", "13587", "1116766490855473152", "9223372036854775807"}},
	{"Base2", snowflake.ID.Base2, snowflake.ParseBase2, []string{"0", "111001", "11010100010011", "111101111111100011010011010011100000100000000000000000000000", strings.Repeat("1", 63)}},
	{"Base32", snowflake.ID.Base32, bytesOf(snowflake.ParseBase32), []string{"y", "b3", "peu", "69hpguoeyyyy", "8999999999999"}},
	{"Base36", snowflake.ID.Base36, snowflake.ParseBase36, []string{"0", "1l", "ahf", "8hg4ojd30u80", "1y2p0ij32e8e7"}},
	{"Base58", snowflake.ID.Base58, bytesOf(snowflake.ParseBase58), []string{"1", "Z", "53g", "3Amry1HHf7U", "npL6MjP8Qfc"}},
	{"Base64", snowflake.ID.Base64, snowflake.ParseBase64, []string{"MA==", "NTc=", "MTM1ODc=", "MTExNjc2NjQ5MDg1NTQ3MzE1Mg==", "OTIyMzM3MjAzNjg1NDc3NTgwNw=="}},
}

func bytesOf(parse func([]byte) (snowflake.ID, error)) func(string) (snowflake.ID, error) {
	return func(text string) (snowflake.ID, error) { return parse([]byte(text)) }
}

// Known IDs have the texts of the original, and any 64 bits have all forms and come back.
func TestForms(t *testing.T) {
	for _, f := range forms {
		for i, n := range []int64{0, 57, 13587, 1116766490855473152, math.MaxInt64, -1, math.MinInt64} {
			id := snowflake.ParseInt64(n)
			text := f.write(id)
			if i < len(f.known) {
				assert.Equal(t, f.known[i], text, "%s of %d", f.name, n)
			}
			back, err := f.parse(text)
			require.NoError(t, err, "%s of %d", f.name, n)
			assert.Equal(t, n, back.Int64(), f.name)
			assert.Equal(t, id, snowflake.ParseIntBytes(id.IntBytes()))
		}
	}
	assert.Equal(t, "JPwcyDCgEup", snowflake.ID(-1).Base58())
	assert.Equal(t, [8]byte{0, 0, 0, 0, 0, 0, 0x35, 0x13}, snowflake.ID(13587).IntBytes())
}

func TestRefusesWhatIsNoID(t *testing.T) {
	for _, f := range forms {
		for _, text := range []string{"", " ", "\xff\xff\xff111682167957041", "1112316766490855473152111231676649085547315211123167664908554731521", "!", "1 2", "0.5"} {
			_, err := f.parse(text)
			assert.Error(t, err, "%s %q", f.name, text)
		}
	}
	// The original reads these as other numbers.
	for _, text := range strings.Fields("l 2 v yyyl bbbbbbbbbbbbbb oyyyyyyyyyyyy 9999999999999") {
		id, err := snowflake.ParseBase32([]byte(text))
		assert.True(t, id == -1 && errors.Is(err, snowflake.ErrInvalidBase32), "%q: %d, %v", text, id, err)
	}
	for _, text := range strings.Fields("0 O I l 222222222222 JPwcyDCgEuq ZZZZZZZZZZZ") { // the last but one is 2^64
		id, err := snowflake.ParseBase58([]byte(text))
		assert.True(t, id == -1 && errors.Is(err, snowflake.ErrInvalidBase58), "%q: %d, %v", text, id, err)
	}
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal(map[string]snowflake.ID{"id": 7})
	require.NoError(t, err)
	assert.Equal(t, `{"id":"7"}`, string(text))
	var back map[string]snowflake.ID
	require.NoError(t, json.Unmarshal(text, &back))
	assert.EqualValues(t, 7, back["id"])

	for _, bad := range []string{`1`, `null`, `""`, `"invalid`, `{}`, `true`, `"`, ``, `invalid"`, `"9223372036854775808"`} {
		id := snowflake.ID(7)
		err := id.UnmarshalJSON([]byte(bad))
		var number *strconv.NumError
		assert.Equal(t, !errors.As(err, &number), errors.As(err, new(snowflake.JSONSyntaxError)), "%s", bad)
		assert.Less(t, len(err.Error()), 200)
		assert.EqualValues(t, 7, id)
	}
}

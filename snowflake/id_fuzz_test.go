package snowflake_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

var canonicalDecimal = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// requireParseError checks that an error names a cause and is small, also for a large
// input.
func requireParseError(t *testing.T, err error) {
	t.Helper()
	require.True(t, slices.ContainsFunc([]error{
		snowflake.ErrSyntax, snowflake.ErrLength, snowflake.ErrRange, snowflake.ErrType,
	}, func(cause error) bool { return errors.Is(err, cause) }), "%v", err)
	require.Less(t, len(err.Error()), 512)
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "0", "00", "-1", "+1", "1_0", " 1", "1541815603606036480",
		"9223372036854775807", "9223372036854775808", "18446744073709551616", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, _ := new(big.Int).SetString(s, 10)
		good := canonicalDecimal.MatchString(s) && n.IsInt64()

		id, err := snowflake.Parse(s)
		require.Equal(t, good, err == nil, "%v", err)
		if err != nil {
			require.Zero(t, id)
			requireParseError(t, err)
			return
		}
		require.Equal(t, n.Int64(), id.Int64())
		require.Equal(t, s, id.String())

		var again snowflake.ID
		require.NoError(t, again.UnmarshalText([]byte(s)))
		require.Equal(t, id, again)
		b := id.Bytes()
		require.NoError(t, again.UnmarshalBinary(b[:]))
		require.Equal(t, id, again)
		for _, form := range idForms {
			again, err = form.parse(form.format(id))
			require.NoError(t, err)
			require.Equal(t, id, again)
		}
	})
}

func FuzzParseForms(f *testing.F) {
	for _, form := range idForms {
		for _, id := range []snowflake.ID{0, tweetID, largestID, -1, -1 << 63} {
			f.Add(form.format(id))
		}
	}
	f.Add("iasDI3xHlF8oO")
	f.Add("1ASD-13XH-1F8")
	lookalikes := strings.NewReplacer("I", "1", "L", "1", "O", "0")

	f.Fuzz(func(t *testing.T, s string) {
		for _, form := range idForms {
			id, err := form.parse(s)
			if err != nil {
				require.Zero(t, id)
				requireParseError(t, err)
				continue
			}
			require.GreaterOrEqual(t, id, snowflake.ID(0))
			canonical := s
			if form.name == "base32" {
				canonical = lookalikes.Replace(strings.ToUpper(s))
			}
			require.Equal(t, canonical, form.format(id))
			require.Equal(t, canonical, form.text(big.NewInt(int64(id))))
		}
	})
}

func FuzzIDJSON(f *testing.F) {
	for _, s := range []string{`"1541815603606036480"`, `1541815603606036480`, `"9223372036854775808"`, `"007"`,
		`"\u0031"`, `"\x"`, `"1`, `null`, `true`, `-1`, `1.0`, `1e3`, `{"id":1}`, `[1]`, ` 1 `, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		direct := untouchedID
		if err := direct.UnmarshalJSON(data); err != nil {
			require.Equal(t, untouchedID, direct)
			requireParseError(t, err)
		} else {
			require.True(t, json.Valid(data), "read from what is not JSON")
		}

		id := untouchedID
		if err := json.Unmarshal(data, &id); err != nil {
			require.Equal(t, untouchedID, id)
			return
		}
		// A second opinion on what the document says.
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		var value any
		require.NoError(t, decoder.Decode(&value))
		switch value := value.(type) {
		case nil:
			require.Equal(t, untouchedID, id)
		case string:
			require.Equal(t, value, id.String())
		case json.Number:
			require.Equal(t, value.String(), id.String())
		default:
			t.Fatalf("read an ID from a %T", value)
		}

		written, err := json.Marshal(id)
		require.NoError(t, err)
		require.JSONEq(t, `"`+id.String()+`"`, string(written))
		var again snowflake.ID
		require.NoError(t, json.Unmarshal(written, &again))
		require.Equal(t, id, again)
	})
}

func FuzzIDScan(f *testing.F) {
	f.Add(int64(tweetID), uint64(tweetID), []byte("1541815603606036480"))
	f.Add(int64(-1), uint64(1<<63), []byte("9223372036854775808"))
	f.Add(int64(0), uint64(0), []byte(""))
	f.Add(int64(1), uint64(1), []byte("-1"))

	f.Fuzz(func(t *testing.T, n int64, u uint64, text []byte) {
		for _, src := range []any{n, u, text, string(text)} {
			id := untouchedID
			if err := id.Scan(src); err != nil {
				require.Equal(t, untouchedID, id)
				requireParseError(t, err)
				continue
			}
			value, err := id.Value()
			require.NoError(t, err)
			require.Equal(t, int64(id), value)

			var again snowflake.ID
			require.NoError(t, again.Scan(value))
			require.Equal(t, id, again)
			switch src.(type) {
			case int64:
				require.Equal(t, n, int64(id))
			case uint64:
				require.Equal(t, u, uint64(id))
			default:
				require.Equal(t, string(text), id.String())
			}
		}
	})
}

func FuzzIDBSON(f *testing.F) {
	for _, id := range []snowflake.ID{0, 1, tweetID, largestID} {
		typ, data, err := id.MarshalBSONValue()
		require.NoError(f, err)
		f.Add(typ, data)
	}
	f.Add(byte(0x10), []byte{1, 2, 0, 0})
	f.Add(byte(0x10), []byte{0, 0, 0, 0x80})
	f.Add(byte(0x12), []byte{0, 0, 0, 0, 0, 0, 0, 0x80})
	f.Add(byte(0x12), []byte{1, 2, 0, 0})
	f.Add(byte(0x0a), []byte(nil))
	f.Add(byte(0x08), []byte{1})
	f.Add(byte(0x01), []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f})

	widths := map[byte]int{0x10: 4, 0x12: 8} // of the integers of BSON
	f.Fuzz(func(t *testing.T, typ byte, data []byte) {
		width := widths[typ]
		negative := len(data) > 0 && data[len(data)-1] >= 0x80
		good := width > 0 && len(data) == width && !negative

		id := untouchedID
		err := id.UnmarshalBSONValue(typ, data)
		require.Equal(t, good, err == nil, "%v", err)
		if err != nil {
			require.Equal(t, untouchedID, id)
			requireParseError(t, err)
			return
		}
		// A second reading: little-endian.
		bigEndian := slices.Clone(data)
		slices.Reverse(bigEndian)
		require.Equal(t, new(big.Int).SetBytes(bigEndian).String(), id.String())

		typ, data, err = id.MarshalBSONValue()
		require.NoError(t, err)
		require.Equal(t, byte(0x12), typ)
		require.Len(t, data, 8)
		again := untouchedID
		require.NoError(t, again.UnmarshalBSONValue(typ, data))
		require.Equal(t, id, again)
	})
}

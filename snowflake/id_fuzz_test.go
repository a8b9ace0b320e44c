package snowflake_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

// Any text is refused by a form, with a cause, or read as an ID whose one spelling it is, but
// for the look-alikes of base 32 and what other writers of JSON, BSON, MessagePack and SQL may give.
func FuzzForms(f *testing.F) {
	for _, form := range forms {
		for _, id := range []snowflake.ID{0, 1, tweetID, largestID, -1} {
			if text, err := form.write(id); err == nil {
				f.Add(text)
			}
		}
	}
	for _, s := range []string{"", "00", "-1", "+1", "1_0", " 1", "1 ", "18446744073709551616", "99999999999999999999x", "iasDI3xHlF8oO", "1ASD-13XH-1F8",
		`"007"`, `"\u0031"`, `"\x"`, `"1`, `null`, `true`, `1.0`, `1e3`, `{"id":1}`, `[1]`, ` 1 `, "\x10\x01\x02\x00\x00", "\x10\x00\x00\x00\x80", "\x0a", "\x08\x01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, form := range forms {
			if form.name == "BSON" && s == "" {
				continue // there is always a type
			}
			id := untouchedID
			if err := form.read(&id, s); err != nil {
				require.Equal(t, untouchedID, id)
				require.Less(t, len(err.Error()), 512)
				require.True(t, slices.ContainsFunc([]error{snowflake.ErrSyntax, snowflake.ErrLength, snowflake.ErrRange, snowflake.ErrType},
					func(cause error) bool { return errors.Is(err, cause) }), "%v", err)
				continue
			}
			require.GreaterOrEqual(t, id, snowflake.ID(0))
			written, err := form.write(id)
			require.NoError(t, err)
			switch form.name {
			case "JSON":
				decoder := json.NewDecoder(strings.NewReader(s))
				decoder.UseNumber()
				var value any
				require.NoError(t, decoder.Decode(&value), "read from what is not JSON")
				if value == nil { // null changes nothing
					value = untouchedID
				}
				require.Equal(t, fmt.Sprint(value), id.String())
			case "BSON": // little-endian, of 4 or 8 bytes
				bigEndian := []byte(s[1:])
				slices.Reverse(bigEndian)
				require.Equal(t, new(big.Int).SetBytes(bigEndian).String(), id.String())
			case "msgpack": // one byte, or the bytes behind it
				require.Equal(t, new(big.Int).SetBytes([]byte(s[min(len(s)-1, 1):])).String(), id.String())
			case "base32":
				require.Equal(t, strings.NewReplacer("I", "1", "L", "1", "O", "0").Replace(strings.ToUpper(s)), written)
			default:
				require.Equal(t, s, written, form.name)
			}
			if form.alphabet != "" {
				require.Equal(t, form.text(big.NewInt(int64(id))), written)
			}
		}
	})
}

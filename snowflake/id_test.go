package snowflake_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

const (
	largestID = snowflake.ID(math.MaxInt64)
	tweetID   = snowflake.ID(1541815603606036480) // a public ID of Twitter's layout

	// untouchedID is what a destination holds before a read that must fail.
	untouchedID = snowflake.ID(4711)
)

// form is one way to write an ID and to read it back. A form of digits says how, apart from the
// implementation: its alphabet, what it reads beside the alphabet, and its width.
type form struct {
	name               string
	write              func(snowflake.ID) (string, error)
	read               func(*snowflake.ID, string) error
	alphabet, accepted string
	width              int // 0: as short as the number
}

var forms = []form{
	{name: "decimal", alphabet: "0123456789",
		write: func(id snowflake.ID) (string, error) { b, err := id.MarshalText(); return string(b), err },
		read:  (*snowflake.ID).UnmarshalParam},
	{name: "base32", alphabet: "0123456789ABCDEFGHJKMNPQRSTVWXYZ", accepted: "abcdefghjkmnpqrstvwxyzIiLlOo", width: 13,
		write: always(snowflake.ID.Base32), read: into(snowflake.ParseBase32)},
	{name: "base58", alphabet: "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", width: 11,
		write: always(snowflake.ID.Base58), read: into(snowflake.ParseBase58)},
	{name: "base62", alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", width: 11,
		write: always(snowflake.ID.Base62), read: into(snowflake.ParseBase62)},
	{name: "binary",
		write: func(id snowflake.ID) (string, error) { b, err := id.MarshalBinary(); return string(b), err },
		read:  func(id *snowflake.ID, s string) error { return id.UnmarshalBinary([]byte(s)) }},
	{name: "JSON",
		write: func(id snowflake.ID) (string, error) { b, err := id.MarshalJSON(); return string(b), err },
		read:  func(id *snowflake.ID, s string) error { return id.UnmarshalJSON([]byte(s)) }},
	{name: "BSON", // the type, then the data
		write: func(id snowflake.ID) (string, error) {
			typ, data, err := id.MarshalBSONValue()
			return string(append([]byte{typ}, data...)), err
		},
		read: func(id *snowflake.ID, s string) error { return id.UnmarshalBSONValue(s[0], []byte(s[1:])) }},
	{name: "SQL",
		write: func(id snowflake.ID) (string, error) { v, err := id.Value(); return fmt.Sprint(v), err },
		read:  func(id *snowflake.ID, s string) error { return id.Scan(s) }},
	{name: "msgpack",
		write: func(id snowflake.ID) (string, error) { b, err := id.MarshalMsgpack(); return string(b), err },
		read:  func(id *snowflake.ID, s string) error { return id.UnmarshalMsgpack([]byte(s)) }},
}

// digits are the forms of digits.
var digits = forms[:4]

func always(write func(snowflake.ID) string) func(snowflake.ID) (string, error) {
	return func(id snowflake.ID) (string, error) { return write(id), nil }
}

func into(parse func(string) (snowflake.ID, error)) func(*snowflake.ID, string) error {
	return func(id *snowflake.ID, s string) error {
		got, err := parse(s)
		if err == nil {
			*id = got
		} else if got != 0 {
			return fmt.Errorf("%w, and returned %d", err, got)
		}
		return err
	}
}

// text writes n by long division, padded to the width; it may come out longer.
func (f *form) text(n *big.Int) string {
	base, digit := big.NewInt(int64(len(f.alphabet))), new(big.Int)
	s := ""
	for n = new(big.Int).Set(n); n.Sign() > 0; {
		n.DivMod(n, base, digit)
		s = f.alphabet[digit.Int64():][:1] + s
	}
	return strings.Repeat(f.alphabet[:1], max(0, max(f.width, 1)-len(s))) + s
}

// refuse checks that a text is refused for a cause, with a small error of one line that ends
// with the text, and that the destination stays as it was.
func (f *form) refuse(t *testing.T, s string, cause error, end string) {
	t.Helper()
	id := untouchedID
	err := f.read(&id, s)
	require.ErrorIs(t, err, cause, "%s %.99q", f.name, s)
	require.ErrorContains(t, err, f.name+" ID")
	require.True(t, strings.HasSuffix(err.Error(), end), "%s %.99q: %v", f.name, s, err)
	require.Less(t, len(err.Error()), 512)
	require.NotContains(t, err.Error(), "\n")
	require.Equal(t, untouchedID, id)
}

// randomIDs returns n IDs of every magnitude, each followed by its neighbour.
func randomIDs(n int) []snowflake.ID {
	r := rand.New(rand.NewPCG(1, 2))
	ids := []snowflake.ID{0, 1, tweetID, largestID - 1, largestID}
	for len(ids) < n {
		id := snowflake.ID(r.Int64() >> r.IntN(63))
		ids = append(ids, id, id^1)
	}
	return ids
}

func TestFormsKnownValues(t *testing.T) {
	for _, tc := range []struct {
		id                                     snowflake.ID
		decimal, base32, base58, base62, bytes string
	}{
		{0, "0", "0000000000000", "11111111111", "00000000000", "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{175928847299117063, "175928847299117063", "04W86BB0G4007", "1QgmVVkniES", "0Czks0tP37X", "\x02\x71\x06\x5a\xc1\x02\x00\x07"},
		{tweetID, "1541815603606036480", "1ASD13XH1F800", "4aaW4SzAyQK", "1ptWyK4WgZU", "\x15\x65\xa1\x1f\x62\x17\xa0\x00"},
		{largestID, "9223372036854775807", "7ZZZZZZZZZZZZ", "NQm6nKp8qFC", "AzL8n0Y58m7", "\x7f\xff\xff\xff\xff\xff\xff\xff"},
		// What no generator issues is written as the same bits, unsigned, or refused.
		{math.MinInt64, "", "8000000000000", "NQm6nKp8qFD", "AzL8n0Y58m8", ""},
		{-5, "", "FZZZZZZZZZZZV", "jpXCZedGfVL", "LygHa16AHYB", ""},
	} {
		raw := tc.id.Bytes()
		slices.Reverse(raw[:])
		known := []string{tc.decimal, tc.base32, tc.base58, tc.base62, tc.bytes, `"` + tc.decimal + `"`, "\x12" + string(raw[:]), tc.decimal, "\xd3" + tc.bytes}
		for i, f := range forms {
			text, err := f.write(tc.id)
			if tc.id < 0 && f.width == 0 {
				require.ErrorIs(t, err, snowflake.ErrRange, f.name)
				require.ErrorContains(t, err, fmt.Sprintf("ID %d is out of range: it is negative", int64(tc.id)))
				continue
			}
			require.NoError(t, err)
			require.Equal(t, known[i], text, f.name)
			if tc.id < 0 {
				f.refuse(t, text, snowflake.ErrRange, "exceeds 9223372036854775807")
			}
		}
	}
	require.Equal(t, "-5", snowflake.ID(-5).String())
	run := snowflake.Run{First: 7000, Count: 3, Stride: 16}
	require.Equal(t, []snowflake.ID{7016, 7032}, []snowflake.ID{run.At(1), run.Last()})
	require.Equal(t, int64(-5), snowflake.ID(-5).Int64())
}

// Every form reads what it wrote, and those of a fixed width sort as the IDs do.
func TestFormsRoundTripAndSort(t *testing.T) {
	for _, f := range forms {
		before, beforeText := snowflake.ID(0), ""
		for _, id := range randomIDs(3000) {
			text, err := f.write(id)
			require.NoError(t, err, f.name)
			got := untouchedID
			require.NoError(t, f.read(&got, text), f.name)
			require.Equal(t, id, got, f.name)
			if f.alphabet != "" {
				require.Equal(t, f.text(big.NewInt(int64(id))), text)
			}
			if beforeText != "" && (f.width > 0 || f.name == "binary") {
				require.Equal(t, before < id, beforeText < text, "%s: %d %d", f.name, before, id)
			}
			before, beforeText = id, text
		}
	}
	text, err := tweetID.AppendText([]byte("id="))
	require.NoError(t, err)
	require.Equal(t, "id=1541815603606036480", string(text))
	text, err = snowflake.ID(-1).AppendText([]byte("id="))
	require.Error(t, err)
	require.Equal(t, "id=", string(text))
	text, err = snowflake.ID(-1).AppendBinary([]byte("id="))
	require.Error(t, err)
	require.Equal(t, "id=", string(text))
}

func TestFormsRefuseEveryBadByteEverywhere(t *testing.T) {
	for _, f := range digits {
		good, err := f.write(tweetID)
		require.NoError(t, err)
		for pos := range len(good) {
			for c := range 256 {
				text := []byte(good)
				text[pos] = byte(c)
				id := untouchedID
				switch accepted := strings.IndexByte(f.alphabet+f.accepted, byte(c)) >= 0; {
				case !accepted:
					f.refuse(t, string(text), snowflake.ErrSyntax, fmt.Sprintf(" at offset %d", pos))
				case f.width == 0 && pos == 0 && c == '0':
					f.refuse(t, string(text), snowflake.ErrSyntax, "leading zero at offset 0")
				case f.read(&id, string(text)) != nil:
					f.refuse(t, string(text), snowflake.ErrRange, "exceeds 9223372036854775807")
				}
			}
		}
		// The bad byte is what to report, even behind a number too large already.
		before := f.width - 1
		if f.width == 0 {
			before = 30
		}
		f.refuse(t, strings.Repeat(f.alphabet[len(f.alphabet)-1:], before)+"-", snowflake.ErrSyntax, fmt.Sprintf("offset %d", before))
	}
}

// Numbers just above the largest ID, and numbers whose low 64 bits look harmless, which
// arithmetic that wraps would let through; and every wrong length.
func TestFormsRefuseTooLargeAndTooLong(t *testing.T) {
	for _, f := range digits {
		for shift := uint(63); shift < 200; shift++ {
			for _, add := range []int64{0, 1, int64(tweetID)} {
				n := new(big.Int).Lsh(big.NewInt(1), shift)
				text := f.text(n.Add(n, big.NewInt(add)))
				if f.width > 0 && len(text) > f.width {
					f.refuse(t, text, snowflake.ErrLength, fmt.Sprintf("length %d, want %d", len(text), f.width))
				} else {
					f.refuse(t, text, snowflake.ErrRange, "exceeds 9223372036854775807")
				}
			}
		}
		for n := 0; f.width > 0 && n < 40; n++ {
			if n != f.width {
				f.refuse(t, strings.Repeat(f.alphabet[:1], n), snowflake.ErrLength, fmt.Sprintf("want %d", f.width))
			}
		}
	}
}

func TestFormsRefuse(t *testing.T) {
	const range63 = "exceeds 9223372036854775807"
	x64, x20 := strings.Repeat("x", 64), strings.Repeat("x", 1<<20)
	for _, tc := range []struct {
		form, text string
		cause      error
		end        string
	}{
		{"decimal", "", snowflake.ErrLength, `decimal ID: wrong length: empty, want 1 to 19 digits`},
		{"decimal", "12a", snowflake.ErrSyntax, `decimal ID "12a": malformed: bad character "a" at offset 2`},
		{"decimal", "1\xff", snowflake.ErrSyntax, `decimal ID "1\xff": malformed: bad character "\xff" at offset 1`},
		{"decimal", "007", snowflake.ErrSyntax, `decimal ID "007": malformed: leading zero at offset 0`},
		{"decimal", "١٢", snowflake.ErrSyntax, "offset 0"}, // digits, but not ASCII
		{"decimal", strings.Repeat("9", 1<<20), snowflake.ErrRange, range63},
		{"decimal", x64, snowflake.ErrSyntax, `decimal ID "` + x64 + `": malformed: bad character "x" at offset 0`},
		{"base58", x20, snowflake.ErrLength, `base58 ID "` + x64 + `"…: wrong length: length 1048576, want 11`},
		{"binary", "1234567", snowflake.ErrLength, "length 7, want 8"},
		{"binary", "\x80\x00\x00\x00\x00\x00\x00\x01", snowflake.ErrRange, range63},
		{"JSON", `""`, snowflake.ErrLength, "want 1 to 19 digits"},
		{"JSON", `1.5`, snowflake.ErrSyntax, `JSON ID "1.5": malformed: bad character "." at offset 1`},
		{"JSON", `"1\""`, snowflake.ErrSyntax, "offset 1"},
		{"JSON", `9223372036854775808`, snowflake.ErrRange, range63},
		{"JSON", `"9223372036854775808"`, snowflake.ErrRange, range63},
		{"JSON", `x7"`, snowflake.ErrType, "want a string of digits or an integer"},
		{"JSON", `true`, snowflake.ErrType, `JSON ID "true": wrong type: want a string of digits or an integer`},
		{"JSON", `{"id":1}`, snowflake.ErrType, "an integer"},
		// A caller other than encoding/json may pass what is not JSON at all.
		{"JSON", ``, snowflake.ErrType, "an integer"},
		{"JSON", `"`, snowflake.ErrType, "an integer"},
		{"JSON", `"12`, snowflake.ErrType, "an integer"},
		{"JSON", `12"`, snowflake.ErrSyntax, "offset 2"},
		{"JSON", `"\"`, snowflake.ErrSyntax, "not a JSON string"},
		{"JSON", `"\x"`, snowflake.ErrSyntax, "not a JSON string"},
		{"JSON", ` 1`, snowflake.ErrType, "an integer"},
		{"BSON", "\x12\xff\xff\xff\xff\xff\xff\xff\xff", snowflake.ErrRange, `BSON ID "-1": out of range: is negative`},
		{"BSON", "\x10\xff\xff\xff\xff", snowflake.ErrRange, `BSON ID "-1": out of range: is negative`},
		{"BSON", "\x121234567", snowflake.ErrLength, "length 7, want 8"},
		{"BSON", "\x1012345678", snowflake.ErrLength, "length 8, want 4"},
		{"BSON", "\x0a", snowflake.ErrType, "null; read into a *ID if the field may be null"},
		{"BSON", "\x0812345678", snowflake.ErrType, "type 0x08, want an integer of 64 or 32 bits"}, // a bool
		{"BSON", "\x0112345678", snowflake.ErrType, "type 0x01, want an integer of 64 or 32 bits"}, // a double, which rounds
		{"SQL", "", snowflake.ErrLength, "want 1 to 19 digits"},
		{"msgpack", "", snowflake.ErrLength, "no value"},
		{"msgpack", "\x05\x05", snowflake.ErrLength, "1 bytes follow the first, want 0"},
		{"msgpack", "\xd3\x00\x00\x00\x00\x00\x00\x00", snowflake.ErrLength, "7 bytes follow the first, want 8"},
		{"msgpack", "\xd3\xff\xff\xff\xff\xff\xff\xff\xff", snowflake.ErrRange, "is negative or above 9223372036854775807"},
		{"msgpack", "\xcf\x80\x00\x00\x00\x00\x00\x00\x00", snowflake.ErrRange, "is negative or above 9223372036854775807"},
		{"msgpack", "\xd0\x80", snowflake.ErrRange, "is negative or above 9223372036854775807"},
		{"msgpack", "\xff", snowflake.ErrType, "first byte 0xff, want an integer that is not negative"},
		{"msgpack", "\xc0", snowflake.ErrType, "first byte 0xc0, want an integer that is not negative"}, // nil
		{"msgpack", "\xcb12345678", snowflake.ErrType, "first byte 0xcb, want an integer that is not negative"},
	} {
		for _, f := range forms {
			if f.name == tc.form {
				f.refuse(t, tc.text, tc.cause, tc.end)
			}
		}
	}
}

// What each form reads beside what it writes.
func TestFormsAccept(t *testing.T) {
	for _, tc := range []struct {
		text string
		read func(*snowflake.ID, string) error
		want snowflake.ID
	}{
		{"1asd13xh1f800", forms[1].read, tweetID}, // what people write
		{"iasDI3xHlF8oO", forms[1].read, tweetID},
		{`0`, forms[5].read, 0},
		{`1541815603606036480`, forms[5].read, tweetID},
		{`"\u00312\u0033"`, forms[5].read, 123},
		{`null`, forms[5].read, untouchedID},
		{"\x10\x01\x02\x00\x00", forms[6].read, 513},
		{"\x7f", forms[8].read, 127},
		{"\xcc\xff", forms[8].read, 255},
		{"\xcd\x80\x01", forms[8].read, 1<<15 + 1},
		{"\xd2\x7f\x00\x00\x01", forms[8].read, 127<<24 + 1},
	} {
		got := untouchedID
		require.NoError(t, tc.read(&got, tc.text), tc.text)
		require.Equal(t, tc.want, got, tc.text)
	}
}

func TestIDInDocuments(t *testing.T) {
	type document struct {
		ID       snowflake.ID            `json:"id"`
		Parent   *snowflake.ID           `json:"parent"`
		Quoted   snowflake.ID            `json:"quoted,string"`
		Siblings []snowflake.ID          `json:"siblings"`
		Names    map[snowflake.ID]string `json:"names"`
	}
	want := document{ID: tweetID, Quoted: largestID, Siblings: []snowflake.ID{0, largestID}, Names: map[snowflake.ID]string{tweetID: "tweet"}}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	require.Equal(t, `{"id":"1541815603606036480","parent":null,"quoted":"9223372036854775807",`+
		`"siblings":["0","9223372036854775807"],"names":{"1541815603606036480":"tweet"}}`, string(data))
	var got document
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, want, got)

	var buf bytes.Buffer
	require.NoError(t, gob.NewEncoder(&buf).Encode(tweetID))
	var id snowflake.ID
	require.NoError(t, gob.NewDecoder(&buf).Decode(&id))
	require.Equal(t, tweetID, id)

	slog.New(slog.NewJSONHandler(&buf, nil)).Info("issued", "id", tweetID)
	require.Contains(t, buf.String(), `"id":"1541815603606036480"`)
	require.Equal(t, "-5", snowflake.ID(-5).LogValue().String())
}

func TestIDScan(t *testing.T) {
	for _, tc := range []struct {
		src  any
		want snowflake.ID
		err  string
	}{
		{src: int64(math.MaxInt64), want: largestID},
		{src: []byte("1541815603606036480"), want: tweetID},
		{src: int64(-5), err: `SQL ID "-5": out of range: is negative`},
		{src: uint64(math.MaxInt64 + 1), err: `SQL ID "9223372036854775808": out of range: exceeds 9223372036854775807`},
		{src: nil, err: "SQL ID: wrong type: NULL; scan into sql.Null[ID] if the column may be NULL"},
		{src: 1.5, err: "SQL ID: wrong type: type float64, want int64, uint64, string or []byte"},
	} {
		got := untouchedID
		err := got.Scan(tc.src)
		if tc.err == "" {
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			continue
		}
		require.EqualError(t, err, tc.err)
		require.Equal(t, untouchedID, got)
	}
	for _, want := range []sql.Null[snowflake.ID]{{}, {V: tweetID, Valid: true}} {
		value, err := want.Value()
		require.NoError(t, err)
		value, err = driver.DefaultParameterConverter.ConvertValue(value)
		require.NoError(t, err)
		var got sql.Null[snowflake.ID]
		require.NoError(t, got.Scan(value))
		require.Equal(t, want, got)
	}
}

func TestIDAllocations(t *testing.T) {
	id, text, raw := tweetID, []byte(tweetID.String()), tweetID.Bytes()
	quoted := []byte(`"` + tweetID.String() + `"`)
	b32, b62 := id.Base32(), id.Base62()
	buf := make([]byte, 0, 64)
	var asText any = id.String()
	var sink string
	var got snowflake.ID
	for _, tc := range []struct {
		name string
		want float64
		f    func()
	}{
		{"String", 1, func() { sink = id.String() }},
		{"Base32", 1, func() { sink = id.Base32() }},
		{"Base62", 1, func() { sink = id.Base62() }},
		{"AppendText", 0, func() { _, _ = id.AppendText(buf) }},
		{"AppendBinary", 0, func() { _, _ = id.AppendBinary(buf) }},
		{"MarshalJSON", 1, func() { _, _ = id.MarshalJSON() }},
		{"Parse", 0, func() { got, _ = snowflake.Parse(string(text)) }},
		{"ParseBase32", 0, func() { got, _ = snowflake.ParseBase32(b32) }},
		{"ParseBase62", 0, func() { got, _ = snowflake.ParseBase62(b62) }},
		{"FromBytes", 0, func() { got, _ = snowflake.FromBytes(raw[:]) }},
		{"UnmarshalJSON", 0, func() { _ = got.UnmarshalJSON(quoted) }},
		{"Scan string", 0, func() { _ = got.Scan(asText) }},
	} {
		got = id
		assert.LessOrEqual(t, testing.AllocsPerRun(100, tc.f), tc.want, tc.name)
		assert.Equal(t, id, got, tc.name)
	}
	require.NotEmpty(t, sink)
}

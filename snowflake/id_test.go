package snowflake_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

var (
	_ fmt.Stringer               = snowflake.ID(0)
	_ slog.LogValuer             = snowflake.ID(0)
	_ encoding.TextAppender      = snowflake.ID(0)
	_ encoding.TextMarshaler     = snowflake.ID(0)
	_ encoding.TextUnmarshaler   = (*snowflake.ID)(nil)
	_ encoding.BinaryAppender    = snowflake.ID(0)
	_ encoding.BinaryMarshaler   = snowflake.ID(0)
	_ encoding.BinaryUnmarshaler = (*snowflake.ID)(nil)
	_ json.Marshaler             = snowflake.ID(0)
	_ json.Unmarshaler           = (*snowflake.ID)(nil)
	_ driver.Valuer              = snowflake.ID(0)
	_ sql.Scanner                = (*snowflake.ID)(nil)
)

const (
	largestID = snowflake.ID(math.MaxInt64)
	tweetID   = snowflake.ID(1541815603606036480) // a public ID of Twitter's layout

	// untouchedID is what a destination holds before a read that must fail.
	untouchedID = snowflake.ID(4711)
)

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

// requireRefused checks the form, the cause and, unless it is -1, the offset in an error,
// and that the error is small.
func requireRefused(t *testing.T, err error, form string, cause error, offset int) {
	t.Helper()
	require.ErrorIs(t, err, cause)
	require.ErrorContains(t, err, form+" ID")
	if offset >= 0 {
		require.Regexp(t, fmt.Sprintf(" at offset %d$", offset), err.Error())
	}
	require.Less(t, len(err.Error()), 512)
	require.NotContains(t, err.Error(), "\n")
}

func TestParseIDAccepts(t *testing.T) {
	for text, want := range map[string]snowflake.ID{
		"0":                   0,
		"7":                   7,
		"10":                  10,
		"1541815603606036480": tweetID,
		"9223372036854775807": largestID,
	} {
		id, err := snowflake.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, id)
		require.Equal(t, text, id.String())
	}
	for _, id := range randomIDs(2000) {
		got, err := snowflake.Parse(id.String())
		require.NoError(t, err)
		require.Equal(t, id, got)
		require.Equal(t, int64(id), got.Int64())
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, tc := range []struct {
		text   string
		cause  error
		offset int
	}{
		{"", snowflake.ErrLength, -1},
		{"-1", snowflake.ErrSyntax, 0},
		{"+1", snowflake.ErrSyntax, 0},
		{" 1", snowflake.ErrSyntax, 0},
		{"1 ", snowflake.ErrSyntax, 1},
		{"1\n", snowflake.ErrSyntax, 1},
		{"1_000", snowflake.ErrSyntax, 1},
		{"1,000", snowflake.ErrSyntax, 1},
		{"0x1F", snowflake.ErrSyntax, 1},
		{"1e3", snowflake.ErrSyntax, 1},
		{"12.0", snowflake.ErrSyntax, 2},
		{"00", snowflake.ErrSyntax, 0},
		{"007", snowflake.ErrSyntax, 0},
		{strings.Repeat("0", 30), snowflake.ErrSyntax, 0},
		{"١٢", snowflake.ErrSyntax, 0}, // digits, but not ASCII
		{"99999999999999999999x", snowflake.ErrSyntax, 20},
		{strings.Repeat("9", 1<<20), snowflake.ErrRange, -1},
		{strings.Repeat("9", 1<<20) + "x", snowflake.ErrSyntax, 1 << 20},
	} {
		id, err := snowflake.Parse(tc.text)
		requireRefused(t, err, "decimal", tc.cause, tc.offset)
		require.Zero(t, id)
	}
}

func TestParseIDRefusesEveryBadByteEverywhere(t *testing.T) {
	for pos := range len(tweetID.String()) {
		for c := range 256 {
			if '0' <= c && c <= '9' {
				continue
			}
			text := []byte(tweetID.String())
			text[pos] = byte(c)
			_, err := snowflake.Parse(string(text))
			requireRefused(t, err, "decimal", snowflake.ErrSyntax, pos)
		}
	}
}

func TestParseIDRefusesTooLarge(t *testing.T) {
	for _, n := range tooLargeNumbers() {
		_, err := snowflake.Parse(n.String())
		requireRefused(t, err, "decimal", snowflake.ErrRange, -1)
	}
}

func TestIDText(t *testing.T) {
	for _, id := range randomIDs(200) {
		text, err := id.MarshalText()
		require.NoError(t, err)
		require.Equal(t, id.String(), string(text))

		text, err = id.AppendText([]byte("id="))
		require.NoError(t, err)
		require.Equal(t, "id="+id.String(), string(text))

		var got snowflake.ID
		require.NoError(t, got.UnmarshalText([]byte(id.String())))
		require.Equal(t, id, got)
	}
	got := untouchedID
	requireRefused(t, got.UnmarshalText([]byte("12a")), "decimal", snowflake.ErrSyntax, 2)
	require.Equal(t, untouchedID, got)
}

func TestIDBinary(t *testing.T) {
	require.Equal(t, [8]byte{0x15, 0x65, 0xa1, 0x1f, 0x62, 0x17, 0xa0, 0x00}, tweetID.Bytes())
	ids := randomIDs(2000)
	for i, id := range ids {
		b := id.Bytes()
		got, err := snowflake.FromBytes(b[:])
		require.NoError(t, err)
		require.Equal(t, id, got)

		before := ids[max(i-1, 0)].Bytes()
		require.Equal(t, ids[max(i-1, 0)] < id, bytes.Compare(before[:], b[:]) < 0)

		appended, err := id.AppendBinary([]byte("id="))
		require.NoError(t, err)
		require.Equal(t, "id="+string(b[:]), string(appended))
	}

	var buf bytes.Buffer
	require.NoError(t, gob.NewEncoder(&buf).Encode(tweetID))
	var got snowflake.ID
	require.NoError(t, gob.NewDecoder(&buf).Decode(&got))
	require.Equal(t, tweetID, got)
}

func TestIDBinaryRefuses(t *testing.T) {
	for n := range 100 {
		got := untouchedID
		if n != 8 {
			requireRefused(t, got.UnmarshalBinary(make([]byte, n)), "binary", snowflake.ErrLength, -1)
			require.Equal(t, untouchedID, got)
		}
	}
	for _, first := range []byte{0x80, 0x81, 0xff} {
		got := untouchedID
		requireRefused(t, got.UnmarshalBinary([]byte{first, 0, 0, 0, 0, 0, 0, 1}), "binary", snowflake.ErrRange, -1)
		require.Equal(t, untouchedID, got)
	}
}

func TestIDLogValue(t *testing.T) {
	var buf bytes.Buffer
	slog.New(slog.NewJSONHandler(&buf, nil)).Info("issued", "id", tweetID)
	require.Contains(t, buf.String(), `"id":"1541815603606036480"`)
	require.Equal(t, slog.KindString, tweetID.LogValue().Kind())
}

func TestIDJSONRoundTrip(t *testing.T) {
	type document struct {
		ID       snowflake.ID            `json:"id"`
		Parent   *snowflake.ID           `json:"parent"`
		Quoted   snowflake.ID            `json:"quoted,string"`
		Siblings []snowflake.ID          `json:"siblings"`
		Names    map[snowflake.ID]string `json:"names"`
	}
	want := document{
		ID:       tweetID,
		Quoted:   largestID,
		Siblings: []snowflake.ID{0, largestID},
		Names:    map[snowflake.ID]string{tweetID: "tweet"},
	}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	require.Equal(t, `{"id":"1541815603606036480","parent":null,"quoted":"9223372036854775807",`+
		`"siblings":["0","9223372036854775807"],"names":{"1541815603606036480":"tweet"}}`, string(data))
	var got document
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, want, got)
}

func TestIDUnmarshalJSON(t *testing.T) {
	for data, want := range map[string]snowflake.ID{
		`"0"`:                   0,
		`0`:                     0,
		`"1541815603606036480"`: tweetID,
		`1541815603606036480`:   tweetID,
		` 9223372036854775807 `: largestID, // encoding/json strips the spaces
		`"\u00312\u0033"`:       123,
		`null`:                  untouchedID,
	} {
		got := untouchedID
		require.NoError(t, json.Unmarshal([]byte(data), &got), data)
		require.Equal(t, want, got, data)
	}

	for data, cause := range map[string]error{
		`""`:                    snowflake.ErrLength,
		`"-1"`:                  snowflake.ErrSyntax,
		`-1`:                    snowflake.ErrSyntax,
		`-0`:                    snowflake.ErrSyntax,
		`1.0`:                   snowflake.ErrSyntax,
		`0.5`:                   snowflake.ErrSyntax,
		`1e3`:                   snowflake.ErrSyntax,
		`1E+3`:                  snowflake.ErrSyntax,
		`"1.0"`:                 snowflake.ErrSyntax,
		`" 1"`:                  snowflake.ErrSyntax,
		`"007"`:                 snowflake.ErrSyntax,
		`"null"`:                snowflake.ErrSyntax,
		`"1\n"`:                 snowflake.ErrSyntax,
		`"1\""`:                 snowflake.ErrSyntax,
		`9223372036854775808`:   snowflake.ErrRange,
		`"9223372036854775808"`: snowflake.ErrRange,
		`true`:                  snowflake.ErrType,
		`false`:                 snowflake.ErrType,
		`{}`:                    snowflake.ErrType,
		`{"id":1}`:              snowflake.ErrType,
		`[]`:                    snowflake.ErrType,
		`[1]`:                   snowflake.ErrType,
	} {
		got := untouchedID
		err := json.Unmarshal([]byte(data), &got)
		require.ErrorIs(t, err, cause, data)
		require.ErrorContains(t, err, "JSON ID", data)
		require.Equal(t, untouchedID, got, data)
	}

	// A caller other than encoding/json may pass what is not JSON at all.
	for _, data := range []string{``, `"`, `"12`, `12"`, `"\"`, `"\x"`, `nul`, `'1'`, ` 1`} {
		got := untouchedID
		require.ErrorContains(t, got.UnmarshalJSON([]byte(data)), "JSON ID", data)
		require.Equal(t, untouchedID, got, data)
	}
}

func TestIDScan(t *testing.T) {
	for _, tc := range []struct {
		src   any
		want  snowflake.ID
		cause error
	}{
		{src: int64(0), want: 0},
		{src: int64(tweetID), want: tweetID},
		{src: int64(math.MaxInt64), want: largestID},
		{src: uint64(math.MaxInt64), want: largestID},
		{src: "1541815603606036480", want: tweetID},
		{src: []byte("1541815603606036480"), want: tweetID},
		{src: int64(-1), cause: snowflake.ErrRange},
		{src: int64(math.MinInt64), cause: snowflake.ErrRange},
		{src: uint64(math.MaxInt64 + 1), cause: snowflake.ErrRange},
		{src: uint64(math.MaxUint64), cause: snowflake.ErrRange},
		{src: "9223372036854775808", cause: snowflake.ErrRange},
		{src: "-1", cause: snowflake.ErrSyntax},
		{src: []byte("1.0"), cause: snowflake.ErrSyntax},
		{src: "", cause: snowflake.ErrLength},
		{src: []byte(nil), cause: snowflake.ErrLength},
		{src: nil, cause: snowflake.ErrType},
		{src: 1.0, cause: snowflake.ErrType},
		{src: true, cause: snowflake.ErrType},
		{src: int32(1), cause: snowflake.ErrType},
		{src: time.Unix(0, 0), cause: snowflake.ErrType},
	} {
		got := untouchedID
		err := got.Scan(tc.src)
		if tc.cause == nil {
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			continue
		}
		require.ErrorIs(t, err, tc.cause, "%T %v", tc.src, tc.src)
		require.ErrorContains(t, err, "SQL ID")
		require.Equal(t, untouchedID, got)
	}
}

func TestIDInDatabase(t *testing.T) {
	value, err := driver.DefaultParameterConverter.ConvertValue(tweetID)
	require.NoError(t, err)
	require.Equal(t, int64(tweetID), value)

	for _, want := range []sql.Null[snowflake.ID]{{}, {V: tweetID, Valid: true}} {
		value, err := want.Value()
		require.NoError(t, err)
		var got sql.Null[snowflake.ID]
		require.NoError(t, got.Scan(value))
		require.Equal(t, want, got)
	}
}

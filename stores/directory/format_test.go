package directory

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

var some = stores.Cell{Key: "node/0000007", Version: 12, Value: []byte("the value")}

func TestFormat(t *testing.T) {
	assert.Equal(t, "tickflake-cell 1 crc64=50b31d07b02e7868 key=node/0000007 version=12 length=9\nthe value\n", string(encode(some)))
	for _, c := range []stores.Cell{
		some,
		{Key: "a", Version: 1},
		{Key: strings.Repeat("k", stores.MaxKey), Version: 1<<63 - 1, Value: []byte(strings.Repeat("\n", stores.MaxValue))},
	} {
		data := encode(c)
		assert.LessOrEqual(t, len(data), maxFile)
		got, problem := parse(data, c.Key)
		require.Empty(t, problem)
		assert.Equal(t, c.Key, got.Key)
		assert.Equal(t, c.Version, got.Version)
		assert.Equal(t, string(c.Value), string(got.Value))
	}
}

// tornStates are what a file can be after damage of every sort, and the beginning of
// what is said about it.
func tornStates() map[string][2]string {
	good := string(encode(some))
	other := string(encode(stores.Cell{Key: "node/0000008", Version: 12, Value: some.Value}))
	swap := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	return map[string][2]string{
		"empty":               {"", "it is empty"},
		"zeros":               {strings.Repeat("\x00", len(good)), "it is not a cell of tickflake"},
		"garbage":             {"\xff\xfe\x00garbage", "it is not a cell of tickflake"},
		"text":                {"limit = 12\n", "it is not a cell of tickflake"},
		"cut in the header":   {good[:20], "its first line is cut off"},
		"cut in the value":    {good[:len(good)-4], "it is cut off: 83 bytes of 87"},
		"cut by one byte":     {good[:len(good)-1], "it is cut off"},
		"header only":         {good[:strings.Index(good, "\n")+1], "it is cut off"},
		"more behind":         {good + "\n", "its checksum does not match"},
		"twice":               {good + good, "its checksum does not match"},
		"long":                {good + strings.Repeat("x", 1<<20), "its checksum does not match"},
		"later format":        {swap("cell 1", "cell 2"), "its format is 2, and this program knows format 1 only"},
		"later, other format": {"tickflake-cell 3 {}", "its format is 3"},
		"no format":           {swap("cell 1", "cell x"), "its checksum does not match"},
		"no fields":           {"tickflake-cell 1\n\n", "its length, \"\", is no number"},
		"a lower version":     {swap("version=12", "version=11"), "its checksum does not match"},
		"another's key":       {swap("key=node/0000007", "key=x y"), "it is the cell x"},
		"version 0":           {swap("version=12", "version=0"), "its version, \"0\", is no number"},
		"huge version":        {swap("version=12", "version=9223372036854775808"), "its version"},
		"negative length":     {swap("length=9", "length=-9"), "its length"},
		"huge length":         {swap("length=9", "length=1025"), "its length"},
		"shorter length":      {swap("length=9", "length=8"), "its checksum does not match"},
		"a changed value":     {swap("the value", "the valve"), "its checksum does not match"},
		"another's":           {other, "it is the cell node/0000008"},
		"more spaces":         {swap(" key", "  key"), "its checksum does not match"},
		"a line end":          {strings.ReplaceAll(good, "\n", "\r\n"), "its checksum does not match"},
		"a byte order mark":   {"\ufeff" + good, "it is not a cell of tickflake"},
	}
}

// No change of one byte, and no cutting off, goes unnoticed.
func TestParseEveryByte(t *testing.T) {
	good := encode(some)
	for i := range good {
		_, problem := parse(good[:i], "node/0000007")
		assert.NotEmpty(t, problem, "cut at %d", i)
		for bit := range 8 {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << bit
			_, problem := parse(bad, "node/0000007")
			assert.NotEmpty(t, problem, "bit %d of byte %d", bit, i)
		}
	}
}

// Whatever is taken for a cell is exactly what is written for that cell.
func FuzzParse(f *testing.F) {
	f.Add(encode(some), "node/0000007")
	f.Add(encode(stores.Cell{Key: "a", Version: 1}), "a")
	for _, state := range tornStates() {
		f.Add([]byte(state[0]), "node/0000007")
	}
	f.Fuzz(func(t *testing.T, data []byte, key string) {
		c, problem := parse(data, key)
		if problem != "" {
			return
		}
		if c.Key != key || c.Version == 0 || len(c.Value) > stores.MaxValue || string(encode(c)) != string(data) {
			t.Errorf("%q was taken for %+v", data, c)
		}
	})
}

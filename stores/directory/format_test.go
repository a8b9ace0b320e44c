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
	swap := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	return map[string][2]string{
		"empty":               {"", "it is empty"},
		"zeros":               {strings.Repeat("\x00", len(good)), "it is not a cell of tickflake"},
		"cut in the header":   {good[:20], "its first line is cut off"},
		"cut in the value":    {good[:len(good)-4], "it is cut off: 83 bytes of 87"},
		"cut by one byte":     {good[:len(good)-1], "it is cut off"},
		"twice":               {good + good, "its checksum does not match"},
		"long":                {good + strings.Repeat("x", 1<<20), "its checksum does not match"},
		"later format":        {swap("cell 1", "cell 2"), "its format is 2, and this program knows format 1 only"},
		"later, other format": {"tickflake-cell 3 {}", "its format is 3"},
		"no fields":           {"tickflake-cell 1\n\n", "its checksum does not match"},
		"version 0":           {string(encode(stores.Cell{Key: some.Key, Value: some.Value})), "its checksum does not match"},
		"huge version":        {string(encode(stores.Cell{Key: some.Key, Version: 1 << 63, Value: some.Value})), "its checksum does not match"},
		"huge value":          {string(encode(stores.Cell{Key: some.Key, Version: 12, Value: make([]byte, stores.MaxValue+1)})), "its checksum does not match"},
		"negative length":     {swap("length=9", "length=-9"), "its checksum does not match"},
		"a changed value":     {swap("the value", "the valve"), "its checksum does not match"},
		"another's":           {string(encode(stores.Cell{Key: "node/0000008", Version: 12, Value: some.Value})), "it is the cell node/0000008"},
		"no key":              {string(encode(stores.Cell{Key: "A", Version: 12, Value: some.Value})), "its checksum does not match"},
		"a line end":          {strings.ReplaceAll(good, "\n", "\r\n"), "its checksum does not match"},
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

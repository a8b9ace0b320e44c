package lease

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

var someRecord = record{
	Holder: "9f2c", Owner: "host \"é\", process 7", Limit: 123456789, Until: "2029-06-01T12:00:00.000Z",
	Window: 30000, Write: "ab12", Layout: snowflake.Default().String(),
}

func TestRecordIsReadBack(t *testing.T) {
	for _, r := range []record{{}, someRecord, {Limit: 1<<64 - 1, Window: 1 << 40}} {
		got, err := decode(Cell{Node: 3, Version: 1, Value: r.encode()})
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
}

// Every record that is written fits into a cell, whatever the options.
func TestRecordsFit(t *testing.T) {
	wide := snowflake.Default()
	wide.Parts = []snowflake.Part{{Name: strings.Repeat("a", 900), Bits: wide.NodeBits}}
	for name, options := range map[string][]Option{
		"characters that are escaped": {WithOwner(strings.Repeat("\x00", maxOwner))},
		"a long layout":               {WithLayout(wide)},
		"a long name":                 {WithOwner(strings.Repeat("a", maxOwner+1))},
	} {
		_, err := newKeeper(client{}, options)
		var option *OptionError
		require.ErrorAs(t, err, &option, name)
		require.Equal(t, "WithOwner", option.Option, name)
	}
	for _, owner := range []string{"", strings.Repeat("é", maxOwner/2), strings.Repeat("a", maxOwner), "no\xffUTF-8"} {
		k, err := newKeeper(client{}, []Option{WithOwner(owner), WithWindow(maxWindow)})
		require.NoError(t, err)
		value := k.record(1<<64 - 1).encode()
		require.LessOrEqual(t, len(value), MaxValue)
		require.LessOrEqual(t, len(value), k.longest())
		require.True(t, utf8.Valid(value))
	}
}

func TestRecordOfAnotherFormat(t *testing.T) {
	text := string(someRecord.encode())
	withSum := func(body string) string {
		return fmt.Sprintf("%s%08x %s", recordHeader, crc32.ChecksumIEEE([]byte(body)), body)
	}
	for name, value := range map[string]string{
		"empty":           "",
		"header only":     recordHeader,
		"cut":             text[:len(text)/2],
		"cut by one":      text[:len(text)-1],
		"longer by one":   text + " ",
		"a later version": "tickflake2" + text[len("tickflake1"):],
		"zeros":           string(make([]byte, 200)),
		"no JSON":         withSum("limit=7"),
		"another type":    withSum(`{"limit":"7"}`),
		"below zero":      withSum(`{"limit":-7}`),
		"too large":       withSum(`{"limit":99999999999999999999999}`),
	} {
		_, err := decode(Cell{Node: 3, Version: 1, Value: []byte(value)})
		var e *RecordError
		require.ErrorAs(t, err, &e, name)
		require.EqualValues(t, 3, e.Node, name)
	}
}

func TestLayoutsThatFit(t *testing.T) {
	layout := snowflake.Default()
	for name, test := range map[string]struct {
		change func(*snowflake.Layout)
		fits   bool
	}{
		"the same":        {func(*snowflake.Layout) {}, true},
		"another name":    {func(l *snowflake.Layout) { l.Name = "other" }, true},
		"more time bits":  {func(l *snowflake.Layout) { l.TimeBits = 40 }, true},
		"fewer node bits": {func(l *snowflake.Layout) { l.NodeBits-- }, false},
		"sequence bits":   {func(l *snowflake.Layout) { l.SequenceBits-- }, false},
		"another tick":    {func(l *snowflake.Layout) { l.Tick *= 2 }, false},
		"another epoch":   {func(l *snowflake.Layout) { l.Epoch = l.Epoch.Add(time.Second) }, false},
		"another order":   {func(l *snowflake.Layout) { l.Order = snowflake.TimeSequenceNode }, false},
		"named parts": {func(l *snowflake.Layout) {
			l.Parts = []snowflake.Part{{Name: "a", Bits: 3}, {Name: "b", Bits: l.NodeBits - 3}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			other := layout
			test.change(&other)
			err := record{Layout: other.String()}.fits(7, layout, layout.String())
			if test.fits {
				require.NoError(t, err)
				return
			}
			var mismatch *LayoutMismatchError
			require.ErrorAs(t, err, &mismatch)
			require.EqualValues(t, 7, mismatch.Node)
			require.Equal(t, other.String(), mismatch.Theirs.String())
		})
	}
	var e *RecordError
	require.ErrorAs(t, record{Layout: "nonsense"}.fits(7, layout, layout.String()), &e)
}

// Whatever a cell holds, it is either what a keeper has written, or refused.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(""), 0, byte(0))
	f.Add(someRecord.encode(), 40, byte('7'))
	f.Add(record{}.encode(), 12, byte(1))
	f.Add([]byte(recordHeader+"00000000 {}"), 3, byte('x'))
	f.Fuzz(func(t *testing.T, value []byte, at int, b byte) {
		r, err := decode(Cell{Version: 1, Value: value})
		if err != nil {
			var e *RecordError
			require.ErrorAs(t, err, &e)
		} else {
			again, err := decode(Cell{Version: 1, Value: r.encode()})
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
		// One byte that was changed is noticed.
		text := someRecord.encode()
		at = int(uint(at) % uint(len(text)))
		if text[at] == b {
			return
		}
		text[at] = b
		_, err = decode(Cell{Version: 1, Value: text})
		require.Error(t, err)
	})
}

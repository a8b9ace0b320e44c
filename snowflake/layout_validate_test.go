package snowflake_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

func TestLayoutValidate(t *testing.T) {
	type layout = snowflake.Layout
	for name, c := range map[string]struct {
		change   func(*layout)
		problems int
		message  []string
	}{
		"seen in the wild": {
			func(l *layout) { l.TimeBits, l.NodeBits, l.SequenceBits = 37, 20, 16 },
			1,
			[]string{"widths 37+20+16 sum to 73 bits; at most 63 fit (the 64th is the sign): remove 10; 37 bits of 1ms last 4.36 years"},
		},
		"one bit over": {
			func(l *layout) { l.TimeBits = 42 }, 1,
			[]string{"widths 42+10+12 sum to 64 bits", "remove 1; 42 bits of 1ms last 139.37 years"},
		},
		"no time": {
			func(l *layout) { l.TimeBits = 0 }, 1,
			[]string{"the time field is 0 bits wide; give it 1 to 62 bits"},
		},
		"time takes all": {
			func(l *layout) { l.TimeBits, l.NodeBits, l.SequenceBits = 63, 0, 0 }, 1,
			[]string{"the time field is 63 bits wide"},
		},
		"negative node": {
			func(l *layout) { l.NodeBits = -1 }, 1,
			[]string{"the node field is -1 bits wide; give it 0 to 62 bits"},
		},
		"widths that overflow": {
			func(l *layout) { l.NodeBits, l.SequenceBits = math.MaxInt, math.MaxInt }, 3,
			[]string{"3 problems: (1) the node field is " + strconv.Itoa(math.MaxInt) + " bits wide", "(2) the sequence field"},
		},
		"no tick":    {func(l *layout) { l.Tick = 0 }, 1, []string{"a tick of 0s is out of range; give 1ns to 1h"}},
		"long tick":  {func(l *layout) { l.Tick = time.Hour + 1 }, 1, []string{"a tick of 1h0m0.000000001s is out of range"}},
		"no epoch":   {func(l *layout) { l.Epoch = time.Time{} }, 1, []string{"the epoch is not set"}},
		"old epoch":  {func(l *layout) { l.Epoch = time.Unix(-1, 0) }, 1, []string{"epoch 1969-12-31T23:59:59Z is 1s before 1970-01-01T00:00:00Z, the earliest possible"}},
		"late epoch": {func(l *layout) { l.Epoch = time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC) }, 1, []string{"is 12m43.145224193s after 2262-04-11T23:47:16.854775807Z, the latest possible"}},
		"order":      {func(l *layout) { l.Order = 2 }, 1, []string{"order 2 is unknown; use TimeNodeSequence or TimeSequenceNode"}},
		"part sum": {
			func(l *layout) { l.Parts = []snowflake.Part{{Name: "a", Bits: 5}, {Name: "b", Bits: 6}} }, 1,
			[]string{"the widths of the node's parts sum to 11 bits, but the node field has 10 bits"},
		},
		"parts that leave bits": {
			func(l *layout) { l.Parts = []snowflake.Part{{Name: "a", Bits: 9}} }, 1,
			[]string{"sum to 9 bits, but the node field has 10 bits; make them equal"},
		},
		"parts without node bits": {
			func(l *layout) { l.NodeBits, l.Parts = 0, []snowflake.Part{{Name: "a", Bits: 1}} }, 1,
			[]string{"sum to 1 bit, but the node field has 0 bits"},
		},
		"part width": {
			func(l *layout) { l.Parts = []snowflake.Part{{Name: "a", Bits: 0}, {Name: "b", Bits: 10}} }, 1,
			[]string{`part "a" is 0 bits wide; give it 1 to 62 bits`},
		},
		"part names": {
			func(l *layout) {
				l.Parts = []snowflake.Part{{Name: "", Bits: 1}, {Name: "Zone", Bits: 1}, {Name: "tick", Bits: 1}, {Name: "a", Bits: 1}, {Name: "a", Bits: 1}, {Name: "9a", Bits: 1}, {Name: "a b", Bits: 2}, {Name: "a{", Bits: 1}, {Name: "a:", Bits: 1}}
			},
			8,
			[]string{"a part has no name", `part name "Zone" is not valid; use a lower-case letter`, `part name "tick" is reserved`, `part name "a" occurs twice`},
		},
		"part that takes all": {
			func(l *layout) { l.NodeBits, l.Parts = 62, []snowflake.Part{{Name: "a", Bits: 63}} }, 3,
			[]string{`part "a" is 63 bits wide; give it 1 to 62 bits`},
		},
		"one part over": {
			func(l *layout) { l.Parts = make([]snowflake.Part, 63) }, 1, []string{"the node has 63 parts", "remove 1"},
		},
		"part count": {
			func(l *layout) { l.Parts = make([]snowflake.Part, 1_000_000) }, 1,
			[]string{"the node has 1000000 parts; at most 62 of 1 bit each fit: remove 999938"},
		},
		"everything": {
			func(l *layout) { *l = layout{Name: "mine", TimeBits: 63, NodeBits: 1, Order: -1} },
			5,
			[]string{`layout "mine": 5 problems: (1) `, "; (5) order -1 is unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := snowflake.Default()
			l.Name = ""
			c.change(&l)
			err := l.Validate()
			require.ErrorIs(t, err, snowflake.ErrLayout)
			if c.problems > 1 {
				assert.ErrorContains(t, err, fmt.Sprintf(": %d problems: (1) ", c.problems))
			} else {
				assert.NotContains(t, err.Error(), "problems")
			}
			for _, m := range c.message {
				assert.ErrorContains(t, err, m)
			}
			assert.Equal(t, err, l.ValidateAt(time.Now()))
		})
	}
}

// A layout without a lifetime is not told how long it lasts.
func TestLayoutValidateWithoutLifetime(t *testing.T) {
	for _, l := range []snowflake.Layout{
		{Tick: time.Millisecond, TimeBits: 63, NodeBits: 1},
		{Tick: time.Millisecond, TimeBits: 0, NodeBits: 62, SequenceBits: 2},
		{Tick: 0, TimeBits: 62, NodeBits: 2},
	} {
		l.Epoch = layout2025
		err := l.Validate()
		assert.ErrorContains(t, err, "sum to 64 bits")
		assert.NotContains(t, err.Error(), " last ")
	}
}

func TestLayoutValidateAcceptsTheExtremes(t *testing.T) {
	earliest, latest := time.Unix(0, 0), time.Unix(0, math.MaxInt64)
	for _, l := range []snowflake.Layout{
		{Epoch: earliest, Tick: 1, TimeBits: 1},
		{Epoch: latest, Tick: time.Hour, TimeBits: 62, NodeBits: 1},
		{Epoch: layout2025, Tick: time.Millisecond, TimeBits: 1, NodeBits: 62},
		{Epoch: layout2025, Tick: time.Millisecond, TimeBits: 1, SequenceBits: 62, Order: snowflake.TimeSequenceNode},
		{Epoch: layout2025, Tick: time.Millisecond, TimeBits: 21, NodeBits: 21, SequenceBits: 21,
			Parts: []snowflake.Part{{Name: "a-_9", Bits: 20}, {Name: "z", Bits: 1}}},
	} {
		assert.NoError(t, l.Validate(), l)
	}
}

func TestLayoutValidateAt(t *testing.T) {
	assert.NoError(t, snowflake.Twitter().ValidateAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	l := snowflake.Default()
	for _, c := range []struct {
		layout snowflake.Layout
		now    time.Time
		field  string // "" for no error
		text   []string
	}{
		{l, l.Epoch, "", nil},
		{l, l.Epoch.In(time.FixedZone("", 3600)), "", nil},
		{l, l.Epoch.Add(-1), "epoch", []string{`layout "tickflake": epoch 2025-01-01T00:00:00Z is 1ns after now, 2024-12-31T23:59:59.999999999Z; set the clock right`}},
		{l, time.Unix(0, 0), "epoch", []string{"epoch 2025-01-01T00:00:00Z is 55.00 years after now, 1970-01-01T00:00:00Z"}},
		{l, l.End().Add(-1), "", nil},
		{l, l.End(), "time", []string{"the time field, 41 bits of 1ms from 2025-01-01T00:00:00Z, ended at 2094-09-07T15:47:35.552Z, 0s before now"}},
		{snowflake.Baidu(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "time",
			[]string{`layout "baidu": the time field, 28 bits of 1s from 2016-05-19T16:00:00Z, ended at 2024-11-20T13:24:16Z, 406.4 days before now, 2026-01-01T00:00:00Z`, "existing IDs still decode", "use a new table with a later epoch"}},
	} {
		err := c.layout.ValidateAt(c.now)
		if c.field == "" {
			assert.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, snowflake.ErrLayout)
		for _, m := range c.text {
			assert.ErrorContains(t, err, m)
		}
	}
}

// Decode validates the layout every time, so a valid one must cost next to
// nothing.
func TestLayoutValidateAllocatesNothing(t *testing.T) {
	l := snowflake.Twitter()
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = l.Validate() }))
}

func TestOrderString(t *testing.T) {
	assert.Equal(t, "time|node|sequence", snowflake.TimeNodeSequence.String())
	assert.Equal(t, "time|sequence|node", snowflake.TimeSequenceNode.String())
	assert.Equal(t, "order 9", snowflake.Order(9).String())
}

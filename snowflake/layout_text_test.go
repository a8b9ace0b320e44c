package snowflake_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

func TestParseLayout(t *testing.T) {
	epoch := snowflake.Default().Epoch
	twitter := snowflake.Twitter()
	twitter.Name = ""
	recent := twitter
	recent.Epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	coarse := twitter
	coarse.Tick = 10 * time.Millisecond
	plain := snowflake.Layout{Epoch: epoch, Tick: time.Millisecond, TimeBits: 41, NodeBits: 10, SequenceBits: 12}
	with := func(change func(*snowflake.Layout)) snowflake.Layout {
		l := plain
		change(&l)
		return l
	}

	for spec, want := range map[string]snowflake.Layout{
		"twitter":                  snowflake.Twitter(),
		" javascript ":             snowflake.JavaScript(),
		"twitter,epoch=2020-01-01": recent,
		"twitter , tick = 10ms":    coarse,
		"41/10/12":                 plain,
		" 41 / 10 / 12 ,tick=1ms":  plain,
		"41/10/12,epoch=0":         with(func(l *snowflake.Layout) { l.Epoch = time.UnixMilli(0).UTC() }),
		"39/16/8,tick=100us": with(func(l *snowflake.Layout) {
			l.TimeBits, l.NodeBits, l.SequenceBits, l.Tick = 39, 16, 8, 100*time.Microsecond
		}),
		"time=41,node=10,sequence=12": plain,
		"time=41,datacenter=5,worker=5,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z": twitter,
		"tick=1ms,time=41,datacenter=5,epoch=1288834974657,worker=5,sequence=12":            twitter,
		"time=41,datacenter=5,worker=5,sequence=12,epoch=2010-11-04T09:42:54.657+08:00":     twitter,
		"time=41,sequence=12,node=10": with(func(l *snowflake.Layout) { l.Order = snowflake.TimeSequenceNode }),
		"time=39,sequence=8,a=15,b=1": with(func(l *snowflake.Layout) {
			l.TimeBits, l.NodeBits, l.SequenceBits, l.Order = 39, 16, 8, snowflake.TimeSequenceNode
			l.Parts = []snowflake.Part{{Name: "a", Bits: 15}, {Name: "b", Bits: 1}}
		}),
		"time=41,sequence=12":        with(func(l *snowflake.Layout) { l.NodeBits = 0 }),
		"time=41,node=0,sequence=12": with(func(l *snowflake.Layout) { l.NodeBits = 0 }),
	} {
		got, err := snowflake.ParseLayout(spec)
		require.NoError(t, err, spec)
		assert.Equal(t, want, got, spec)
	}
}

func TestParseLayoutRefuses(t *testing.T) {
	for _, c := range []struct {
		spec   string
		offset int
		item   string
		text   string
	}{
		{"", 0, "", `spec "": not a preset (tickflake, twitter, discord, instagram, sonyflake, sonyflake-v1, leaf, baidu, easyswoole, javascript), nor widths like 41/10/12, nor fields like time=41`},
		{"Twitter", 0, "Twitter", "not a preset"},
		{"twitter,", 8, "", "only tick=... and epoch=... can follow"},
		{"twitter,node=9", 8, "node=9", `byte 8, "node=9": only tick=... and epoch=... can follow a preset or widths`},
		{"twitter, tick=fast", 9, "tick=fast", `byte 9, "tick=fast": the tick must be a duration from 1ns to 1h, like 1ms, 10ms or 1s: time: invalid duration "fast"`},
		{"twitter,tick", 8, "tick", "the tick must be a duration"},
		{"twitter,tick=1ms,tick=2ms", 17, "tick=2ms", `"tick" occurs twice`},
		{"41/10/12,epoch=yesterday", 9, "epoch=yesterday", "the epoch must be an instant like 2025-01-01T00:00:00Z, a date like 2025-01-01 (UTC), or milliseconds since 1970"},
		{"41/10/12,epoch=", 9, "epoch=", "the epoch must be"},
		{"41/10/12,epoch=2026", 9, "epoch=2026", "not seconds"},
		{"41/10/12,epoch=1577836800", 9, "epoch=1577836800", "not seconds"},
		{"41/10/12,epoch=99999999999999999999", 9, "epoch=99999999999999999999", "value out of range"},
		{"41/22", 0, "41/22", "2 widths; give three: time/node/sequence"},
		{"41/5/5/12", 0, "41/5/5/12", "4 widths; give three"},
		{"41/x/12", 0, "41/x/12", "a width must be a whole number of bits from 0 to 62"},
		{"41/-1/12", 0, "41/-1/12", "a width must be a whole number"},
		{"41/99999/12", 0, "41/99999/12", "a width must be a whole number"},
		{"time=41,node=10,sequence", 16, "sequence", "not a field; give name=value"},
		{"time=41,node=,sequence=12", 8, "node=", "a width must be"},
		{"time=41,=10,sequence=12", 8, "=10", "a part has no name"},
		{"time=41,Worker=10,sequence=12", 8, "Worker=10", `part name "Worker" is not valid`},
		{"time=41,a=5,a=5,sequence=12", 12, "a=5", `"a" occurs twice`},
		{"time=41,node=5,worker=5,sequence=12", 15, "worker=5", "node=... is a node without named parts and excludes them"},
		{"time=41,worker=5,node=5,sequence=12", 17, "node=5", "node=... is a node without named parts and excludes them"},
		{"node=10,time=41,sequence=12", 8, "time=41", "the time field must come first"},
		{"sequence=12,time=41,node=10", 12, "time=41", "the time field must come first"},
		{"time=41,a=5,sequence=12,b=5", 24, "b=5", "the parts of the node must stand together"},
		{"node=10,sequence=12", 0, "", "time=... is missing"},
		{"time=41,node=10", 0, "", "sequence=... is missing"},
		{"epoch=2020-01-01", 0, "", "time=... is missing"},
		{strings.Repeat("a=1,", 1000), 0, "", "(4000 bytes in all): 1001 items; no layout has more than 66"},
	} {
		got, err := snowflake.ParseLayout(c.spec)
		assert.Zero(t, got)
		require.ErrorIs(t, err, snowflake.ErrLayout, c.spec)
		if c.item != "" {
			assert.ErrorContains(t, err, fmt.Sprintf("spec %q, byte %d, %q: ", c.spec, c.offset, c.item))
		}
		assert.ErrorContains(t, err, c.text, c.spec)
	}
}

// A spec that reads well but is no valid layout names every problem.
func TestParseLayoutValidates(t *testing.T) {
	for spec, text := range map[string]string{
		"37/20/16":                             `spec "37/20/16": unusable layout: widths 37+20+16 sum to 73 bits; at most 63 fit (the 64th is the sign): remove 10; 37 bits of 1ms last 4.36 years`,
		"twitter,tick=2h":                      "a tick of 2h0m0s is out of range",
		"twitter,tick=-1ms":                    "a tick of -1ms is out of range",
		"41/10/12,epoch=1969-12-31":            "epoch 1969-12-31T00:00:00Z is 24h0m0s before 1970",
		"41/10/12,epoch=9223372036854775807":   "the latest possible",
		"0/10/12":                              "the time field is 0 bits wide",
		"time=41,a=0,sequence=12":              `part "a" is 0 bits wide`,
		"time=42,a=5,b=5,sequence=12,tick=10s": "42 bits of 10s last 1.39e+06 years",
	} {
		_, err := snowflake.ParseLayout(spec)
		require.ErrorIs(t, err, snowflake.ErrLayout, spec)
		assert.ErrorContains(t, err, fmt.Sprintf("spec %q: ", spec))
		assert.ErrorContains(t, err, text)
	}
}

func TestLayoutStringRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	layouts := snowflake.Presets()
	for range 10_000 {
		layouts = append(layouts, randomLayout(r))
	}
	for _, l := range layouts {
		parsed, err := snowflake.ParseLayout(l.String())
		require.NoError(t, err)
		l.Name = ""
		require.Equal(t, l, parsed)
	}
}

func TestLayoutText(t *testing.T) {
	type config struct{ Layout snowflake.Layout }
	text, err := json.Marshal(config{snowflake.Leaf()})
	require.NoError(t, err)
	assert.Equal(t, `{"Layout":"time=41,worker=10,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z"}`, string(text))

	var c config
	require.NoError(t, json.Unmarshal([]byte(`{"Layout":"discord"}`), &c))
	assert.Equal(t, snowflake.Discord(), c.Layout)
	assert.Error(t, json.Unmarshal([]byte(`{"Layout":"37/20/16"}`), &c))
	assert.Equal(t, snowflake.Discord(), c.Layout, "unchanged by an error")

	_, err = snowflake.Layout{}.MarshalText()
	assert.ErrorIs(t, err, snowflake.ErrLayout)
}

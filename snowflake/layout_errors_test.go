package snowflake_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/snowflake"
)

// TestErrors has what layouts, specs and demands are refused for, and what the error says.
func TestErrors(t *testing.T) {
	l, twitter, baidu := snowflake.Default(), snowflake.Twitter(), snowflake.Baidu()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := l.End().Sub(l.Epoch)
	const ms = time.Millisecond
	valid := func(change func(*snowflake.Layout)) error {
		l := snowflake.Default()
		l.Name = ""
		change(&l)
		return l.Validate()
	}
	parts := func(nodeBits int, parts ...snowflake.Part) error {
		return valid(func(l *snowflake.Layout) { l.NodeBits, l.Parts = nodeBits, parts })
	}
	parse := func(spec string) error { return onlyError(snowflake.ParseLayout(spec)) }
	compose := func(node, sequence int64) error { return onlyError(twitter.Compose(now, node, sequence)) }
	at := func(l snowflake.Layout, t time.Time) error { return onlyError(l.Compose(t, 0, 0)) }
	decode := func(l snowflake.Layout, id snowflake.ID) error { return onlyError(l.Decode(id)) }
	between := func(from, to time.Duration) error {
		_, _, err := l.Between(l.Epoch.Add(from), l.Epoch.Add(to))
		return err
	}
	plan := func(change func(*snowflake.Demand)) error {
		d := snowflake.Demand{Nodes: 10, RatePerNode: 10, Years: 10}
		change(&d)
		return onlyError(snowflake.Plan(d))
	}
	// 251666611199 s from 2025 to the last second of 9999.
	wide := snowflake.Layout{Epoch: layout2025, Tick: time.Second, TimeBits: 60, NodeBits: 1, SequenceBits: 2}
	hours := snowflake.Layout{Epoch: layout2025, Tick: time.Hour, TimeBits: 62}
	none := snowflake.Layout{NodeBits: -1, SequenceBits: -1}
	_, _, empty := none.Between(now, now.Add(1))
	single := snowflake.Layout{Epoch: layout2025, Tick: 1, TimeBits: 1}

	for cause, rows := range map[error][]struct {
		err  error
		text string // with … for any text between
	}{
		snowflake.ErrEarly: {
			{l.ValidateAt(l.Epoch.Add(-1)), `clock is not set yet: it reads 2024-12-31T23:59:59.999999999Z, 1ns before the epoch of the layout, 2025-01-01T00:00:00Z: set it right`},
			{l.ValidateAt(time.Unix(0, 0)), "1970-01-01T00:00:00Z, 55.00 years before"},
		},
		snowflake.ErrLayout: {
			{parse("37/20/16"), `spec "37/20/16": unusable layout: widths 37+20+16 sum to 73 bits; at most 63 fit (the 64th is the sign): remove 10; 37 bits of 1ms last 4.36 years`},
			{parse("time=42,a=5,b=5,sequence=12,tick=10s"), "remove 1; 42 bits of 10s last 1.39e+06 years"},
			{parse("0/10/12"), "the time field is 0 bits wide; give it 1 to 62 bits"},
			{valid(func(l *snowflake.Layout) { l.NodeBits = -1 }), "the node field is -1 bits wide; give it 0 to 62 bits"},
			{valid(func(l *snowflake.Layout) { l.NodeBits, l.SequenceBits = math.MaxInt, math.MaxInt }), "3 problems: (1) the node field is …(2) the sequence field"},
			{valid(func(l *snowflake.Layout) { l.Tick = 0 }), "a tick of 0s is out of range; give 1ns to 1h"},
			{valid(func(l *snowflake.Layout) { l.Tick = time.Hour + 1 }), "a tick of 1h0m0.000000001s is out of range"},
			{valid(func(l *snowflake.Layout) { l.Epoch = time.Time{} }), "the epoch is not set"},
			{parse("41/10/12,epoch=1969-12-31T23:59:59Z"), "epoch 1969-12-31T23:59:59Z is 1s before 1970-01-01T00:00:00Z, the earliest possible"},
			{parse("41/10/12,epoch=2262-04-12"), "is 12m43.145224193s after 2262-04-11T23:47:16.854775807Z, the latest possible"},
			{valid(func(l *snowflake.Layout) { l.Order = 2 }), "order 2 is unknown; use TimeNodeSequence or TimeSequenceNode"},
			{parts(10, snowflake.Part{Name: "a", Bits: 5}, snowflake.Part{Name: "b", Bits: 6}), "the widths of the node's parts sum to 11 bits, but the node field has 10 bits; make them equal"},
			{parts(10, snowflake.Part{Name: "a", Bits: 63}), `part "a" is 63 bits wide; give it 1 to 62 bits`},
			{parts(2, snowflake.Part{Name: "a", Bits: 1}, snowflake.Part{Name: "a", Bits: 1}), `part name "a" occurs twice`},
			{parts(1, snowflake.Part{Name: "tick", Bits: 1}), `part name "tick" is reserved`},
			{parts(10, make([]snowflake.Part, 63)...), "the node has 63 parts; at most 62 of 1 bit each fit: remove 1"},
			{parse("time=41,a=0,sequence=12"), `part "a" is 0 bits wide`},
			{parse("time=41,=10,sequence=12"), "a part has no name"},
			{parse("time=41,Worker=5,9a=1,a b=1,a{=1,a:=1,sequence=12"), `5 problems: (1) part name "Worker" is not valid; use a lower-case letter…"9a"…"a b"…"a{"…"a:"`},
			{(&snowflake.Layout{Name: "mine", TimeBits: 63, NodeBits: 1, Order: -1}).Validate(), `layout "mine": 5 problems: (1) …; (5) order -1 is unknown`},
			{snowflake.Layout{}.ValidateAt(now), "problems"}, {at(snowflake.Layout{}, now), ""}, {decode(snowflake.Layout{}, 1), ""},
			{onlyError(none.Min(now)), ""}, {onlyError(none.Max(now)), ""}, {empty, ""},
			{onlyError(snowflake.Layout{}.MarshalText()), ""}, {onlyError(snowflake.Layout{}.Node()), ""},

			{snowflake.Layout{Epoch: l.End(), Tick: time.Millisecond, TimeBits: 41}.ValidateAt(now), "epoch 2094-09-07T15:47:35.552Z is …years after now, …; choose an epoch in the past"},
			{l.ValidateAt(l.End()), "the time field, 41 bits of 1ms from 2025-01-01T00:00:00Z, ended at 2094-09-07T15:47:35.552Z, 0s before now"},
			{baidu.ValidateAt(now), `layout "baidu": …ended at 2024-11-20T13:24:16Z, 406.4 days before now, …existing IDs still decode…use a new table with a later epoch`},

			{parse(""), `unusable layout: "": not a preset (tickflake, twitter, discord, instagram, sonyflake, sonyflake-v1, leaf, baidu, easyswoole, javascript), nor widths like 41/10/12, nor fields like time=41`},
			{parse("twitter,"), `"": only tick=... and epoch=... can follow`},
			{parse("twitter,node=9"), `"node=9": only tick=... and epoch=... can follow a preset or widths`},
			{parse("tick=1ms,twitter"), `"twitter": not a field`},
			{parse("twitter, tick=fast"), `"tick=fast": the tick must be a duration from 1ns to 1h, like 1ms, 10ms or 1s: time: invalid duration "fast"`},
			{parse("twitter,tick=1ms,tick=2ms"), `"tick=2ms": "tick" occurs twice`},
			{parse("41/10/12,epoch=yesterday"), "the epoch must be an instant like 2025-01-01T00:00:00Z, a date like 2025-01-01 (UTC), or milliseconds since 1970"},
			{parse("41/10/12,epoch=2026"), "not seconds"},
			{parse("41/10/12,epoch=1999999999"), "not seconds"},
			{parse("41/10/12,epoch=99999999999999999999"), "value out of range"},
			{parse("41/5/5/12"), "4 widths; give three: time/node/sequence"},
			{parse("41/-1/12"), "a width must be a whole number of bits from 0 to 62"},
			{parse("time=41,node=10,sequence"), `"sequence": not a field; give name=value`},
			{parse("time=41,a=5,a=5,sequence=12"), `"a" occurs twice`},
			{parse("time=41,worker=5,node=5,sequence=12"), "node=... is a node without named parts and excludes them"},
			{parse("time=41,node=5,worker=5,sequence=12"), "node=... is a node without named parts and excludes them"},
			{parse("sequence=12,time=41,node=10"), `"time=41": the time field must come first`},
			{parse("time=41,a=5,sequence=12,b=5"), `"b=5": the parts of the node must stand together`},
			{parse("node=10,sequence=12"), "time=... is missing"},
			{parse("time=41,node=10"), "sequence=... is missing"},
			{parse(strings.Repeat("a=1,", 1000)), "(4000 bytes in all): unusable layout: 1001 items; no layout has more than 66"},
		},
		snowflake.ErrRange: {
			{compose(1024, 0), "node 1024 is out of range: it needs 11 bits, but the field has 10 bits; give a number from 0 to 1023"},
			{compose(-1, 0), "node -1 is out of range: it is negative; give a number from 0 to 1023"},
			{compose(0, 5000), "sequence 5000 is out of range: it needs 13 bits, but the field has 12 bits; give a number from 0 to 4095"},
			{onlyError(twitter.Node(32, 0)), "datacenter 32 is out of range: it needs 6 bits"},
			{at(l, l.Epoch.Add(-1)), "instant 2024-12-31T23:59:59.999999999Z is out of range: it is 1ns before the epoch; the layout covers 2025-01-01T00:00:00Z up to, not including, 2094-09-07T15:47:35.552Z"},
			{at(l, l.End()), "instant 2094-09-07T15:47:35.552Z is out of range: it is 1ns after the time field's last instant"},
			{at(hours, endOf9999), "after the time field's last instant"}, {at(l, time.Unix(math.MaxInt64/2, 0)), "after the time field's last instant"},
			{at(l, time.Unix(math.MinInt64/2, 0)), "before the epoch"}, {at(l, time.Time{}), "before the epoch"},
			{onlyError(l.Min(l.End())), "after"}, {onlyError(l.Max(l.End())), "after"},

			{decode(twitter, -1), "ID -1 is out of range: it is negative; IDs of this layout run from 0 to 9223372036854775807"},
			{decode(snowflake.JavaScript(), 1<<53), "it takes 54 bits, 1 more than the layout's fields have; IDs of this layout run from 0 to 9007199254740991"},
			{decode(wide, 251666611200<<3), "its time lies past the year 9999; IDs of this layout run from 0 to 2013332889599"},
			{decode(hours, 5124095576030432), "its time lies past the year 9999"}, // 2^64 seconds or more from the epoch

			{between(5*ms, 5*ms), "instant 2025-01-01T00:00:00.005Z is out of range: it is both start and end of the range, which is empty"},
			{between(5*ms, 4*ms), "ends the range 1ms before its start, 2025-01-01T00:00:00.005Z"},
			{between(-2*ms, -ms), "ends the range 1ms before the epoch; the layout covers"},
			{between(-ms, 0), "ends the range 0s before the epoch"},
			{between(all, all+ms), "starts the range 0s after the time field's end"},
		},
		snowflake.ErrDemand: {
			{plan(func(d *snowflake.Demand) { d.Nodes = 0 }), "a number of nodes of 0 makes no sense; give 1 to 4611686018427387904"},
			{plan(func(d *snowflake.Demand) { d.Nodes = math.MaxInt64 }), "9223372036854775807"},
			{plan(func(d *snowflake.Demand) { d.RatePerNode = 0 }), "a rate per node of 0 makes no sense"},
			{plan(func(d *snowflake.Demand) { d.RatePerNode = math.NaN() }), "NaN"},
			{plan(func(d *snowflake.Demand) { d.RatePerNode = 1e300 }), "1e+300 makes no sense; give a number of IDs per second above 0 and up to 1e15"},
			{plan(func(d *snowflake.Demand) { d.Years = math.Inf(-1) }), "-Inf"},
			{plan(func(d *snowflake.Demand) { d.Years = 7001 }), "7001 makes no sense; give a number of years above 0 and up to 7000"},
			{plan(func(d *snowflake.Demand) { d.Bits = -1 }), "a budget in bits of -1 makes no sense; give 1 to 63, or 0 for 63"},
			{plan(func(d *snowflake.Demand) { d.Epoch = time.Unix(-1, 0) }), "epoch 1969-12-31T23:59:59Z is 1s before 1970"},
			{plan(func(d *snowflake.Demand) { *d = snowflake.Demand{} }), "unusable demand: 3 problems: (1) "},
		},
	} {
		for i, row := range rows {
			if !assert.ErrorIs(t, row.err, cause, "%d: %s", i, row.text) {
				continue
			}
			rest, found := row.err.Error(), true
			for text := range strings.SplitSeq(row.text, "…") {
				_, after, ok := strings.Cut(rest, text)
				rest, found = after, found && ok
			}
			assert.True(t, found, "want %q in: %v", row.text, row.err)
		}
	}

	for _, id := range []snowflake.ID{2013332889599, 1 << 3} {
		assert.NoError(t, decode(wide, id), "the largest, and one of the first")
	}
	for text, err := range map[string]error{
		"1 node numbers given, but the layout takes 2: datacenter, worker (high bits first)": onlyError(twitter.Node(1)),
		"takes 1: node": onlyError(l.Node()), "no node bits; give none": onlyError(single.Node(0)),

		"plan: 100000 nodes, 1000000 IDs/s per node and 100 years need 69 bits, 6 more than 63 (42 time + 17 node + 10 sequence, with the best tick, 1ms); " +
			"one of these fits: at most 2048 nodes (48.83× fewer), or at most 20480 IDs/s per node (48.83× fewer), or at most 2.177 years (45.93× fewer)": plan(
			func(d *snowflake.Demand) { d.Nodes, d.RatePerNode, d.Years = 100_000, 1e6, 100 }),
		"or a budget of 54 bits":                                 plan(func(d *snowflake.Demand) { d.Nodes, d.RatePerNode, d.Years, d.Bits = 256, 25_600, 80, 53 }),
		"no reduction of one of them alone fits; reduce several": plan(func(d *snowflake.Demand) { d.Nodes, d.RatePerNode, d.Years = 1<<40, 1e12, 1000 }),
	} {
		assert.ErrorContains(t, err, text)
	}
	for _, l := range []snowflake.Layout{{TimeBits: 63, NodeBits: 1}, {NodeBits: 62, SequenceBits: 2}} {
		l.Epoch, l.Tick = layout2025, time.Millisecond
		assert.NotContains(t, l.Validate().Error(), " last ", "a layout without a lifetime is not told how long it lasts")
	}
	assert.Equal(t, "time|node|sequence, time|sequence|node, order 9", strings.Join([]string{
		snowflake.TimeNodeSequence.String(), snowflake.TimeSequenceNode.String(), snowflake.Order(9).String()}, ", "))
}

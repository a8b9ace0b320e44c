package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/snowflake"
)

func TestLayoutList(t *testing.T) {
	var table strings.Builder
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, writeTable(&table, snowflake.Presets(), at))
	assert.Equal(t, `NAME          FIELDS                         TICK  EPOCH       ENDS               IDS/S PER NODE      NODES
tickflake     time 41, node 10, sequence 12  1ms   2025-01-01  2094-09-07              4,096,000      1,024
twitter       time 41, node 10, sequence 12  1ms   2010-11-04  2080-07-10              4,096,000      1,024
discord       time 41, node 10, sequence 12  1ms   2015-01-01  2084-09-06              4,096,000      1,024
instagram     time 40, node 13, sequence 10  1ms   2011-08-24  2046-06-27              1,024,000      8,192
sonyflake     time 39, sequence 8, node 16   10ms  2025-01-01  2199-03-19                 25,600     65,536
sonyflake-v1  time 39, sequence 8, node 16   10ms  2014-09-01  2188-11-16                 25,600     65,536
leaf          time 41, node 10, sequence 12  1ms   2010-11-04  2080-07-10              4,096,000      1,024
baidu         time 28, node 22, sequence 13  1s    2016-05-19  2024-11-20 (over)           8,192  4,194,304
easyswoole    time 41, node 10, sequence 12  1ms   2017-10-25  2087-07-02              4,096,000      1,024
javascript    time 38, node 7, sequence 8    10ms  2025-01-01  2112-02-09                 25,600        128
`, table.String())

	assert.Regexp(t, `\nbaidu .* \(over\) `, tickflake("layout", "list").out)
}

func TestLayoutIsOverFromItsEndOn(t *testing.T) {
	l := snowflake.Default()
	assert.False(t, isOver(l, l.End().Add(-1)))
	assert.True(t, isOver(l, l.End()))
}

func TestLayoutListJSON(t *testing.T) {
	got := tickflake("layout", "list", "--format", "json")
	require.Equal(t, result{0, got.out, ""}, got)
	presets := snowflake.Presets()
	require.Len(t, got.lines(), len(presets))
	for i, line := range got.lines() {
		var l struct {
			Name, Spec string
			Over       bool
		}
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		assert.Equal(t, presets[i].Name, l.Name)
		assert.Equal(t, presets[i].String(), l.Spec)
		assert.Equal(t, l.Name == "baidu", l.Over)
	}
}

func TestLayoutShow(t *testing.T) {
	assert.Equal(t, result{0, `twitter

  63      62                22   21      17   16  12   11     0
+-------+----------------------+------------+--------+----------+
| 0     | time                 | datacenter | worker | sequence |
+-------+----------------------+------------+--------+----------+
  1 bit   41 bits                5 bits       5 bits   12 bits

fields        time 41, node 10, sequence 12: 63 of 63 bits
tick          1ms
epoch         2010-11-04T01:42:54.657Z
lifetime      69.7 years
last instant  2080-07-10T17:30:30.208999999Z
nodes         1,024
IDs per node  4,096 per tick, 4,096,000 per second
spec          time=41,datacenter=5,worker=5,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z
`, ""}, tickflake("layout", "show", "twitter"))

	assert.Contains(t, tickflake("layout", "show", "baidu").out,
		"last instant  2024-11-20T13:24:15.999999999Z (over: it decodes old IDs, but needs another epoch to issue new ones)\n")
}

func TestLayoutShowJSON(t *testing.T) {
	assert.Equal(t, result{0, `{"name":"twitter","spec":"time=41,datacenter=5,worker=5,sequence=12,tick=1ms,epoch=2010-11-04T01:42:54.657Z",` +
		`"epoch":"2010-11-04T01:42:54.657Z","tick":"1ms","time_bits":41,"node_bits":10,"sequence_bits":12,"order":"time|node|sequence",` +
		`"parts":[{"name":"datacenter","bits":5},{"name":"worker","bits":5}],"ids_per_tick":4096,"ids_per_second":4096000,"nodes":1024,` +
		`"years":69.6828420270236,"last":"2080-07-10T17:30:30.208999999Z","over":false}` + "\n", ""},
		tickflake("layout", "show", "twitter", "--format", "json"))
}

// The spec that show prints means the layout shown.
func TestLayoutShowSpecIsReusable(t *testing.T) {
	for _, l := range snowflake.Presets() {
		byName := tickflake("layout", "show", l.Name).out
		rows := strings.Split(strings.TrimSpace(byName), "\n")
		spec, ok := strings.CutPrefix(rows[len(rows)-1], "spec          ")
		require.True(t, ok)
		assert.Equal(t, byName, l.Name+"\n\n"+tickflake("layout", "show", spec).out)
	}
}

func TestDiagram(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"sonyflake", `
  63      62               24   23    16   15     0
+-------+---------------------+----------+----------+
| 0     | time                | sequence | machine  |
+-------+---------------------+----------+----------+
  1 bit   39 bits               8 bits     16 bits
`},
		{"javascript", `
  63   53   52               15   14   8   7      0
+---------+---------------------+--------+----------+
| 0       | time                | node   | sequence |
+---------+---------------------+--------+----------+
  11 bits   38 bits               7 bits   8 bits
`},
		{"62/0/1", `
  63      62                            1   0
+-------+---------------------------------+----------+
| 0     | time                            | sequence |
+-------+---------------------------------+----------+
  1 bit   62 bits                           1 bit
`},
		{"time=40,a-very-long-name=1,b=22,sequence=0", `
  63      62                23   22                 21        0
+-------+----------------------+------------------+-------------+
| 0     | time                 | a-very-long-name | b           |
+-------+----------------------+------------------+-------------+
  1 bit   40 bits                1 bit              22 bits
`},
	}
	for _, tt := range tests {
		t.Run(tt.spec, func(t *testing.T) {
			l, err := snowflake.ParseLayout(tt.spec)
			require.NoError(t, err)
			assert.Equal(t, tt.want[1:], diagram(l))
		})
	}
}

func TestLayoutPlan(t *testing.T) {
	assert.Equal(t, result{0, `  63   53   52               14   13  10   9      0
+---------+---------------------+--------+----------+
| 0       | time                | node   | sequence |
+---------+---------------------+--------+----------+
  11 bits   39 bits               4 bits   10 bits

fields        time 39, node 4, sequence 10: 53 of 63 bits
tick          1ms
epoch         2026-01-01T00:00:00Z
lifetime      17.4 years
last instant  2043-06-03T21:56:53.887999999Z
nodes         16
IDs per node  1,024 per tick, 1,024,000 per second
spec          time=39,node=4,sequence=10,tick=1ms,epoch=2026-01-01T00:00:00Z
demand        10 nodes, 1,000,000 IDs per second per node, 15 years from the epoch
`, ""}, tickflake(strings.Fields("layout plan --nodes 10 --rate 1e6 --years 15 --bits 53 --epoch 2026-01-01")...))

	got := tickflake(strings.Fields("layout plan --nodes 10 --rate 1e6 --years 15 --format json")...)
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.out, `{"name":"","spec":"time=47,node=4,sequence=12,tick=1ms,epoch=2025-01-01T00:00:00Z",`)
	assert.Contains(t, got.out, `"parts":[],`)
	assert.Contains(t, got.out, `,"demand":{"nodes":10,"rate_per_node":1000000,"years":15}}`)

	got = tickflake(strings.Fields("layout plan --nodes 3000")...)
	assert.Contains(t, got.out, "\nspec          time=41,node=12,sequence=10,tick=1ms,epoch=2025-01-01T00:00:00Z\n"+
		"demand        3,000 nodes, 10,000 IDs per second per node (default of --rate), 50 years from the epoch (default of --years)\n")

	for _, epoch := range []string{"2026-01-01T00:00:00Z", "1767225600000", "2026-01-01T01:00:00+01:00"} {
		got := tickflake(strings.Fields("layout plan --nodes 10 --rate 1e6 --years 15 --epoch " + epoch)...)
		assert.Contains(t, got.out, "epoch         2026-01-01T00:00:00Z\n")
	}
}

func TestNumberText(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 7: "7", 128: "128", 1000: "1,000", 1024: "1,024", 65536: "65,536", 4194304: "4,194,304",
		1 << 52: "4,503,599,627,370,496", 1 << 62: "4.612e+18",
		1.0 / 3600: "0.000278", 8.506: "8.51", 69.68: "69.7", 999.9: "999", 142710.4: "142,710",
	} {
		assert.Equal(t, want, command.Number(f))
	}
}

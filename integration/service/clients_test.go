package service

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/snowflake"
)

// number parses the text of an integer.
func number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// ascend checks that texts are IDs, each above the one before, and returns them.
func ascend(t *testing.T, texts ...string) (ids []snowflake.ID) {
	t.Helper()
	for i, text := range texts {
		id, err := snowflake.Parse(text)
		require.NoError(t, err)
		require.True(t, i == 0 || id > ids[i-1], "%d after %v", id, ids)
		ids = append(ids, id)
	}
	return ids
}

// shared is what all clients take from one server, so that no client gets what another one
// has.
type shared struct {
	server               *served
	ids, tickets, orders fleet.Ledger
}

// TestClients runs one process per client library through all tests.
func TestClients(t *testing.T) {
	all := &shared{server: serve(t, nil)}
	tests := []struct {
		name string
		run  func(*testing.T, *driver, *shared)
	}{
		{"issues", testIssues}, {"pipeline", testPipeline}, {"error in a pipeline", testErrorInPipeline},
		{"refused", testRefused}, {"cluster", testCluster}, {"tokens", testTokens},
		{"try again", testTryAgain}, {"loading", testLoading}, {"away", testAway},
	}
	t.Run("of", func(t *testing.T) {
		for _, f := range foreigns {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				d := f.start(t)
				for _, test := range tests {
					t.Run(test.name, func(t *testing.T) {
						d.t = t
						test.run(t, d, all)
					})
				}
			})
		}
	})
	for _, issued := range []*fleet.Ledger{&all.ids, &all.tickets, &all.orders} {
		_, example := issued.Twice()
		assert.Empty(t, example, "issued twice")
	}
	assert.NotRegexp(t, `"level":"(WARN|ERROR)","msg":"[^t]`, all.server.Output(), "but for \"the store may lose\", where temporary files are in memory")
}

// Every client connects as it does by default, and gets IDs with all their bits and numbers
// of both modes.
func testIssues(t *testing.T, d *driver, all *shared) {
	f := d.foreign
	d.connected(all.server)
	before := time.Now().Add(-time.Second)
	texts := []string{d.good(d.call("ID"), f.text).Text}
	batch := d.good(d.call("IDS", "10"), "array").Items
	require.Len(t, batch, 10)
	for _, v := range batch {
		texts = append(texts, d.good(v, f.text).Text)
	}
	for i, id := range ascend(t, texts...) {
		require.Equal(t, texts[i], id.String())
		require.Greater(t, id.Int64(), int64(1)<<53, "JavaScript's numbers lose bits of it")
		parts, err := snowflake.Default().Decode(id)
		require.NoError(t, err)
		require.WithinRange(t, parts.Time, before, time.Now().Add(time.Second))
		all.ids.Add(f.name, 0, 0, id.Int64())
	}

	for name, seen := range map[string]*fleet.Ledger{"tickets": &all.tickets, "orders": &all.orders} {
		first := number(t, d.good(d.method("incr", name), f.integer).Text)
		seen.Add(f.name, 0, 0, first)
		end := number(t, d.good(d.method(f.incrBy, name, "10"), f.integer).Text)
		require.Greater(t, end, first+9)
		for n := end - 9; n <= end; n++ { // the last of ten in a row
			seen.Add(f.name, 0, 0, n)
		}
		require.GreaterOrEqual(t, number(t, d.good(d.method("get", name), f.text).Text), end)
	}
}

// A thousand commands in one pipeline are answered in their order.
func testPipeline(t *testing.T, d *driver, all *shared) {
	f, server := d.foreign, all.server
	d.connected(server)
	commands := make([][]string, 1000)
	for i := range commands {
		commands[i] = [][]string{{"ID"}, {"INCR", "tickets"}}[i%2]
	}
	answers := d.good(d.pipeline(commands), "array").Items
	require.Len(t, answers, len(commands))
	var ids []string
	var numbers []int64
	for i, v := range answers {
		if i%2 == 0 {
			ids = append(ids, d.good(v, f.text).Text)
		} else {
			numbers = append(numbers, number(t, d.good(v, f.integer).Text))
		}
	}
	require.Len(t, ascend(t, ids...), 500)
	require.True(t, slices.IsSorted(numbers))
	require.Len(t, slices.Compact(numbers), 500)
}

// An error in the middle of a pipeline leaves the other answers as they are, in those
// libraries that return them.
func testErrorInPipeline(t *testing.T, d *driver, all *shared) {
	f, server := d.foreign, all.server
	d.connected(server)
	answer := d.pipeline([][]string{{"ID"}, {"INCR", "nothing"}, {"ID"}})
	if f.failures == "raises" {
		d.refused(answer, "sequence create nothing")
	} else {
		items := d.good(answer, "array").Items
		require.Len(t, items, 3)
		d.good(items[0], f.text)
		d.good(items[2], f.text)
		if f.failures == "each" {
			d.refused(items[1], "sequence create nothing")
		} else {
			require.Equal(t, value{Type: "boolean", Text: "false"}, items[1])
		}
	}
	d.good(d.call("ID"), f.text)
}

// The commands that a sequence cannot do are refused by name, and the connection goes on.
func testRefused(t *testing.T, d *driver, all *shared) {
	f, server := d.foreign, all.server
	d.connected(server)
	for _, args := range [][]string{{"SET", "orders", "1"}, {"DEL", "orders"}, {"EVAL", "return 1", "0"}} {
		d.refused(d.call(args...), args[0])
	}
	d.refused(d.call("INCRBY", "orders", "9223372036854775807"))
	d.refused(d.call("INCR", "shop:orders"), "sequence create shop.orders")
	d.good(d.call("ID"), f.text)
}

// A cluster client fails when it connects, with a clear error of the library or the server.
func testCluster(t *testing.T, d *driver, all *shared) {
	f, server := d.foreign, all.server
	d.refused(d.ask("cluster", map[string]any{"port": server.port}), f.reports)
	d.connected(server)
	d.good(d.call("ID"), f.text)
}

// The clients check the server's certificate, and give their token inside of TLS as a password, with and without
// a name. A wrong one is refused, and is nowhere in the log.
func testTokens(t *testing.T, d *driver, _ *shared) {
	const token, wrong = "correct-horse-battery", "incorrect-horse-battery"
	s, ca := withTLS(t)
	s["clients"] = []settings{client("shop", token)}
	server := serve(t, s)
	_, other := withTLS(t)
	for _, credentials := range [][]string{{token}, {"shop", token}} {
		require.NotEqual(t, "error", d.connect(server.port, ca, credentials...).Type)
		d.good(d.call("ID"), d.foreign.text)
		require.Equal(t, "error", d.connect(server.port, other, credentials...).Type)
	}
	for _, credentials := range [][]string{{wrong}, {"shop", wrong}, {"other", token}} {
		d.refused(d.connect(server.port, ca, credentials...), "WRONGPASS")
	}
	assert.NotContains(t, server.Output(), token)
	assert.NotContains(t, server.Output(), wrong)
}

// What the strategy reject says reaches the program: no library repeats the command by
// itself.
func testTryAgain(t *testing.T, d *driver, _ *shared) {
	server := serve(t, settings{"layout": "time=41,node=10,sequence=4,tick=1h,epoch=2025-01-01", "strategy": "reject"}) // 16 IDs per hour
	d.connected(server)
	answer := d.call("ID")
	for n := 1; answer.Type != "error"; n++ {
		require.LessOrEqual(t, n, 2*16)
		answer = d.call("ID")
	}
	d.refused(answer, "TRYAGAIN ")
	assert.Equal(t, 1, server.requests(t, "busy"))
}

// The error for a store that is away reaches the program: no library repeats the command by
// itself.
func testLoading(t *testing.T, d *driver, _ *shared) {
	f := d.foreign
	server := serve(t, settings{"request-timeout": "1s"})
	d.connected(server)
	server.away(t, true)
	answer := d.method("incr", "orders")
	require.Equal(t, "error", answer.Type)
	assert.Contains(t, answer.Class+answer.Text, f.loading)
	assert.Equal(t, 1, server.requests(t, "unavailable"))
	server.away(t, false)
	for end := time.Now().Add(patience); answer.Type != f.integer && time.Now().Before(end); {
		answer = d.method("incr", "orders")
	}
	assert.Positive(t, number(t, d.good(answer, f.integer).Text))
}

// While no server answers, a call fails, or the client keeps it until there is one. After a restart
// calls succeed, if need be with a new connection, without a new client object.
func testAway(t *testing.T, d *driver, _ *shared) {
	f := d.foreign
	server := serve(t, nil)
	d.connected(server)
	before := number(t, d.good(d.call("INCR", "tickets"), f.integer).Text)
	require.NoError(t, server.End())
	var answer value
	if f.keeps {
		require.Equal(t, "null", d.ask("keep", map[string]any{"args": []string{"INCR", "tickets"}}).Type)
		require.NoError(t, server.Start())
		answer = d.ask("kept", nil)
	} else {
		require.Equal(t, "error", d.call("INCR", "tickets").Type)
		require.NoError(t, server.Start())
		if f.connects {
			d.connected(server)
		}
		answer = d.call("INCR", "tickets")
	}
	assert.Equal(t, before+1, number(t, d.good(answer, f.integer).Text), "a clean stop gives numbers back")
}

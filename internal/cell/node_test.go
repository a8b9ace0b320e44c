package cell_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

var some = cell.Node{
	Format: cell.Format, Holder: "0123456789ab", Owner: "host-1, process 77", Floor: 123426789, Limit: 123456789, Until: "2029-06-01T12:00:30.000Z",
	Window: 30000, Write: "ba9876543210", Last: []string{"aa9876543210", "9a9876543210"}, Layout: snowflake.Default().String(),
}

func TestNode(t *testing.T) {
	text := string(some.Encode())
	got, err := cell.DecodeNode([]byte(text))
	require.NoError(t, err)
	require.Equal(t, some, got)
	require.LessOrEqual(t, len(text), stores.MaxValue)

	for _, test := range []struct{ from, to, want string }{
		{text, "", "it is empty"},
		{text, text[:len(text)/2], "no JSON object"},
		{text, text[:len(text)-1], "no JSON object"},
		{text, text + "x", "more text"},
		{text, text + text, "more text"},
		{text, string(make([]byte, 200)), "no JSON object"},
		{text, "limit=7", "no JSON object"},
		{text, "tickflake1 00000000 {}", "no JSON object"},
		{`"format":1`, `"format":2`, "upgrade this process"},
		{`"format":1,`, ``, "its format is 0"},
		{`"format":1`, `"more":1`, "no JSON object"},
		{`"format":1`, `"format":1,"more":1`, "upgrade this process"},
		{`"write":"ba9876543210",`, ``, "no name of its write"},
		{`"last":[`, `"last":["","","","","","","",`, "the names of 9 writes"},
		{`"layout":"`, `"layout":"x`, "its layout is"},
		{`"limit":123456789`, `"limit":"7"`, "no JSON object"},
		{`"limit":123456789`, `"limit":-7`, "no JSON object"},
		{`"limit":123456789`, `"limit":99999999999999999999999`, "no JSON object"},
		{`"limit":123456789`, `"limit":2199023255553`, "its limit is tick 2199023255553, and the time of its layout ends at tick 2199023255552"},
		{`"limit":123456789`, `"limit":123426788`, "its floor is tick 123426789, above its limit, tick 123426788"},
	} {
		value := strings.Replace(text, test.from, test.to, 1)
		require.NotEqual(t, text, value, test.from)
		_, err := cell.DecodeNode([]byte(value))
		require.ErrorIs(t, err, stores.ErrDamaged, value)
		require.ErrorContains(t, err, test.want)
		require.NotContains(t, err.Error(), "\n", value)
	}

	for _, edit := range []func(n *cell.Node){
		func(n *cell.Node) { n.Limit = 1 << 41 },       // the end of time
		func(n *cell.Node) { n.Floor = n.Limit },       // released before a slot was used
		func(n *cell.Node) { n.Last = nil },            // the first write
		func(n *cell.Node) { n.Floor, n.Limit = 0, 0 }, // nothing is granted yet
	} {
		n := some
		edit(&n)
		got, err := cell.DecodeNode(n.Encode())
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
}

// TestNames: a cell keeps the names of the last writes, as many as it has room for.
func TestNames(t *testing.T) {
	var n cell.Node
	require.Empty(t, n.Names(), "there is no cell")
	for i := range 12 {
		n.Last, n.Write = n.Names(), string(rune('a'+i))
	}
	require.Equal(t, "l", n.Write)
	require.Equal(t, strings.Split("k j i h g f e d", " "), n.Last)

	n = some
	n.Last = nil
	for i := range cell.Kept {
		n.Last = append(n.Last, strings.Repeat(string(rune('a'+i)), 24))
	}
	require.Equal(t, n, decoded(t, n))
	n.Owner += strings.Repeat("x", stores.MaxValue-len(n.Encode()))
	require.Equal(t, n, decoded(t, n), "there is room for all")
	n.Owner += "x"
	require.Equal(t, n.Last[:cell.Kept-1], decoded(t, n).Last, "the newest stay")
	require.Len(t, n.Last, cell.Kept, "the value that was written is as it was")
	n.Owner = strings.Repeat("x", stores.MaxValue)
	require.Error(t, stores.CheckValue(n.Encode()), "no name is left to go")
}

func decoded(t *testing.T, n cell.Node) cell.Node {
	got, err := cell.DecodeNode(n.Encode())
	require.NoError(t, err)
	return got
}

func TestLayout(t *testing.T) {
	r, err := cell.DecodeLayout(cell.Layout{Layout: some.Layout}.Encode())
	require.NoError(t, err)
	require.Equal(t, some.Layout, r.Layout)
	for _, value := range []string{"", "{}", `{"format":1,"layout":"l"}`, `{"format":2,"layout":"41/10/12"}`, string(some.Encode())} {
		_, err := cell.DecodeLayout([]byte(value))
		require.ErrorIs(t, err, stores.ErrDamaged, value)
	}
}

// TestCheckTo: a name shows no password, and is one line, also one that was edited in its cell.
func TestCheckTo(t *testing.T) {
	for _, to := range []string{
		"the new store", strings.Repeat("x", cell.MaxTo), "./ids", "file:/var/lib/ids", "postgres://[::1]:5432/ids",
		"etcd://etcd-0.etcd.infra.svc.cluster.local:2379,etcd-1.etcd.infra.svc.cluster.local:2379,etcd-2.etcd.infra.svc.cluster.local:2379",
	} {
		require.NoError(t, cell.CheckTo(to))
		require.Equal(t, to, (&cell.Move{To: to}).Where())
	}
	for _, to := range []string{
		"", strings.Repeat("x", cell.MaxTo+1), strings.Repeat("<", cell.MaxTo/5), "two\nlines", "\x1b[2J", "\xff",
		"user:s3cr3t@tcp(h)/d", "host=h pwd=s3cr3t", "h:6379,Password: s3cr3t", "redis://h#s3cr3t", "redis://h?s3cr3t", "redis%3A%2F%2F:s3cr3t%40h",
	} {
		err := cell.CheckTo(to)
		require.Error(t, err, to)
		require.NotContains(t, err.Error(), "s3cr3t")
		require.Equal(t, "another store", (&cell.Move{To: to}).Where())
	}
}

func TestMove(t *testing.T) {
	var none *cell.Move
	require.False(t, none.Exported())
	require.Empty(t, none.ExportTo("new").Import)
	imported := &cell.Move{Import: "digest"}
	require.False(t, imported.Exported())
	exported := imported.ExportTo("new")
	require.True(t, exported.Exported())
	require.Equal(t, &cell.Move{Export: exported.Export, To: "new", Import: "digest"}, exported)
}

func TestNodeKeys(t *testing.T) {
	for _, node := range []int64{0, 7, 1023, cell.MaxNodes - 1} {
		key := cell.NodeKey(node)
		require.NoError(t, stores.CheckKey(key))
		got, ok := cell.NodeOf(key)
		require.True(t, ok)
		require.Equal(t, node, got)
	}
	for _, key := range []string{"", "layout", "0000007", "node/7", "node/00000007", "node/+000007", "node/-000007", "node/4194304", "seq/0000007"} {
		_, ok := cell.NodeOf(key)
		require.False(t, ok, key)
	}
	require.Less(t, cell.NodeKey(99), cell.NodeKey(100), "in the order of their numbers")
}

// Whatever a cell holds, it is a record that reads the same again, or refused.
func FuzzDecodeNode(f *testing.F) {
	f.Add([]byte(""))
	f.Add(some.Encode())
	f.Add(some.Encode()[:100])
	f.Add([]byte(`{"format":1,"limit":7,"write":"w","layout":"41/10/12","window":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := cell.DecodeNode(value)
		if err != nil {
			require.ErrorIs(t, err, stores.ErrDamaged)
			return
		}
		again, err := cell.DecodeNode(r.Encode())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}

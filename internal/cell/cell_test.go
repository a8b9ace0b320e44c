package cell

import (
	"crypto/rand"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
)

// node is a cell of a node number.
func node(change func(*Node)) Node {
	n := Node{
		Format: Format, Holder: "0123456789ab", Owner: "host-1, process 77", Floor: 123426789, Limit: 123456789, Until: "2029-06-01T12:00:30.000Z",
		Window: 30000, Write: "ba9876543210", Last: []string{"aa9876543210", "9a9876543210"}, Layout: snowflake.Default().String(),
	}
	change(&n)
	return n
}

// sequence is a cell of 100 numbers, from 10 on by 5, of which 40 are granted.
func sequence(change func(*Sequence)) Sequence {
	s := Sequence{
		Format: Format, ID: "a", Creation: 2, Mode: "segmented", Start: 10, Stride: 5, Offset: 0, Max: 509, MinStep: 10, MaxStep: 20,
		Next: 40, From: 30, Most: 40, Writes: 4, Write: "w4",
	}
	change(&s)
	return s
}

func asNode(*Node)         {}
func asSequence(*Sequence) {}

// TestCells: what is written is read again, from the least to the largest values that a cell can have.
func TestCells(t *testing.T) {
	for i, want := range []Node{
		node(asNode),
		node(func(n *Node) { n.Limit = 1 << 41 }),       // the end of time
		node(func(n *Node) { n.Floor = n.Limit }),       // released before a slot was used
		node(func(n *Node) { n.Last = nil }),            // the first write
		node(func(n *Node) { n.Floor, n.Limit = 0, 0 }), // nothing is granted yet
	} {
		got, err := DecodeNode(want.Encode())
		require.NoError(t, err, i)
		require.Equal(t, want, got)
		require.NoError(t, stores.CheckValue(want.Encode()))
	}
	for i, want := range []Sequence{
		sequence(func(r *Sequence) {
			r.Created, r.Last, r.Lost, r.Deleted = [3]int64{1, 2, 3}, []string{"w3", "w2"}, true, true
		}),
		sequence(func(r *Sequence) { r.Creation, r.Writes, r.Before = 1, 1, 1<<63 }),
		sequence(func(r *Sequence) { r.Creation, r.Writes = 1<<63, 1<<63 }),
		sequence(func(r *Sequence) { r.Start, r.Max, r.Stride, r.Offset = 0, 0, 1, 0 }),
		sequence(func(r *Sequence) { r.Start, r.Max, r.Stride, r.Offset = 3, 7, 5, 4 }),
		sequence(func(r *Sequence) { r.MinStep, r.MaxStep = 1, 1 }),
		sequence(func(r *Sequence) { r.From, r.Next, r.Most = MaxIndex, MaxIndex, MaxIndex }),
	} {
		got, err := DecodeSequence(want.Encode())
		require.NoError(t, err, i)
		require.Equal(t, want, got)
	}
	longest := Sequence{ID: strings.Repeat("x", 24), Creation: 1 << 63, Mode: "segmented", Start: 1 << 62, Stride: 1 << 62, Offset: 1 << 62, Max: 1 << 62,
		MinStep: 1 << 62, MaxStep: 1 << 62, Created: [3]int64{1 << 62, 1 << 62, 1 << 62}, Next: 1 << 63, From: 1 << 63, Most: 1 << 63,
		Before: 1 << 63, Writes: 1 << 63, Write: strings.Repeat("x", 24), Last: slices.Repeat([]string{strings.Repeat("x", 24)}, Kept), Lost: true, Deleted: true,
		Period: strings.Repeat("x", 16)}
	assert.NoError(t, stores.CheckValue(longest.Encode()))
	gone := Gone{Nodes{512, 1024}, strings.Repeat("x", MaxTo)}
	spec, all, long := node(asNode).Layout, Nodes{0, 1024}, []Gone{gone, gone, gone, gone, gone}
	for i, f := range []Fleet{
		{Layout: spec, Nodes: all}, // as it was written before
		{Layout: spec, Nodes: all, First: 7, Floor: 1<<41 - 1},
		{Layout: spec, Nodes: Nodes{1023, 1024}, Gone: []Gone{gone}},
		{Layout: spec, Gone: []Gone{gone}}, // it has ended
		{Layout: spec, Gone: long},         // names of other stores, but the last, are dropped
	} {
		text := f.Encode()
		require.NoError(t, stores.CheckValue(text))
		require.Equal(t, i == 0, string(text) == `{"format":1,"layout":"`+spec+`"}`)
		got, err := DecodeFleet(text)
		require.NoError(t, err)
		if f.Format = Format; i == 4 {
			require.Equal(t, []string{"", "", gone.Store}, []string{got.Gone[0].Store, got.Gone[2].Store, got.Gone[4].Store})
			continue
		}
		require.Equal(t, f, got)
	}
	require.Equal(t, gone.Store, long[0].Store, "the value that was written is as it was")
}

// TestEdited edits cells by hand.
func TestEdited(t *testing.T) {
	type edit struct{ from, to, want string }
	both := []edit{
		{`{`, ``, "no JSON object"},
		{`}`, `}x`, "more text"},
		{`"format":1`, `"format":2`, "upgrade this process"},
		{`"format":1,`, ``, "its format is 0"},
		{`"format":1`, `"more":1`, "no JSON object"},
		{`"format":1`, `"format":1,"more":1`, "upgrade this process"},
	}
	for _, c := range []struct {
		text   string
		decode func([]byte) error
		edits  []edit
	}{
		{string(node(asNode).Encode()), func(b []byte) error { _, err := DecodeNode(b); return err }, []edit{
			{`"write":"ba9876543210",`, ``, "no name of its write"},
			{`"last":[`, `"last":["","","","","","","",`, "the names of 9 writes"},
			{`"layout":"`, `"layout":"x`, "its layout is"},
			{`"limit":123456789`, `"limit":"7"`, "no JSON object"},
			{`"limit":123456789`, `"limit":2199023255553`, "its limit is tick 2199023255553, and the time of its layout ends at tick 2199023255552"},
			{`"limit":123456789`, `"limit":123426788`, "its floor is tick 123426789, above its limit, tick 123426788"},
		}},
		{string(sequence(asSequence).Encode()), func(b []byte) error { _, err := DecodeSequence(b); return err }, []edit{
			{`"id":"a"`, `"id":""`, "no id"},
			{`"creation":2`, `"creation":0`, "none of creations"},
			{`"write":"w4"`, `"write":""`, "no name of its write"},
			{`"write":"w4"`, `"write":"w4","last":["1","2","3","4","5","6","7","8","9"]`, "names of 9 writes before its own, and a cell keeps 8"},
			{`"writes":4`, `"writes":0`, "no count"},
			{`"writes":4`, `"writes":9223372036854775809`, "counts 9223372036854775809 writes"},
			{`"creation":2`, `"creation":9223372036854775809`, "and 9223372036854775809 creations"},
			{`"mode":"segmented"`, `"mode":""`, "no mode"},
			{`"stride":5`, `"stride":0`, "stride is 0"},
			{`"offset":0`, `"offset":5`, "stride is 5 with the offset 5"},
			{`"offset":0`, `"offset":-1`, "offset -1"},
			{`"start":10`, `"start":-1`, "starts at -1"},
			{`"max":509`, `"max":9`, "starts at 10, and its maximum is 9"},
			{`"offset":0,"max":509`, `"offset":4,"max":13`, "starts at 10, and its maximum is 13"},
			{`"offset":0,"max":509`, `"offset":1,"max":-9223372036854775808`, "its maximum is -9223372036854775808"},
			{`"max":509`, `"max":9223372036854775807`, "its maximum is 9223372036854775807, and the last number that it can reach is"},
			{`"min_step":10`, `"min_step":0`, "steps are 0 to 20"},
			{`"max_step":20`, `"max_step":9`, "steps are 10 to 9"},
			{`"next":40`, `"next":29`, "next index is 29, the last write began at 30"},
			{`"most":40`, `"most":39`, "next index is 40, the last write began at 30, and the most is 39"},
			{`"most":40`, `"most":9223372036854775808`, "the most is 9223372036854775808"},
			{`"writes":4`, `"before":9223372036854775809,"writes":4`, "numbers up to 9223372036854775809 were granted before"},
		}},
		{string(Fleet{Layout: "41/10/12"}.Encode()), func(b []byte) error { _, err := DecodeFleet(b); return err }, []edit{
			{`"layout":"`, `"layout":"x`, "its layout is"},
			{`}`, `,"first":1024}`, "its first node number is 1024"},
			{`}`, `,"floor":2199023255552}`, "its floor is tick 2199023255552"},
			{`}`, `,"nodes":{"from":5,"to":5}}`, "the node numbers from 5 to 4"},
			{`}`, `,"nodes":{"from":-1,"to":5}}`, "the node numbers from -1 to 4"},
			{`}`, `,"gone":[{"from":0,"to":1025}]}`, "the node numbers from 0 to 1024, and its layout has 1024"},
		}},
	} {
		for _, e := range append(both, c.edits...) {
			value := strings.Replace(c.text, e.from, e.to, 1)
			require.NotEqual(t, c.text, value, e.from)
			err := c.decode([]byte(value))
			require.ErrorIs(t, err, stores.ErrDamaged, value)
			require.ErrorContains(t, err, e.want, value)
			require.NotContains(t, err.Error(), "\n", value)
		}
		for _, value := range []string{"", string(make([]byte, 200)), "limit=7", "{}"} {
			require.ErrorIs(t, c.decode([]byte(value)), stores.ErrDamaged, value)
		}
	}
}

// Whatever a cell holds, it is a record that reads the same again, or refused.
func FuzzDecode(f *testing.F) {
	f.Add(node(asNode).Encode())
	f.Add(node(asNode).Encode()[:100])
	f.Add([]byte(`{"format":1,"limit":7,"write":"w","layout":"41/10/12","window":18446744073709551615}`))
	f.Add(sequence(asSequence).Encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		n, err := DecodeNode(value)
		if err == nil {
			again, err := DecodeNode(n.Encode())
			require.NoError(t, err)
			require.Equal(t, n, again)
		}
		s, failed := DecodeSequence(value)
		if failed == nil {
			again, err := DecodeSequence(s.Encode())
			require.NoError(t, err)
			require.Equal(t, s, again)
			require.LessOrEqual(t, s.Left(), s.Indexes())
		}
		for _, err := range []error{err, failed} {
			if err != nil {
				require.ErrorIs(t, err, stores.ErrDamaged)
			}
		}
	})
}

// TestNames: a cell keeps the names of the last writes, as many as it has room for.
func TestNames(t *testing.T) {
	var n Node
	require.Empty(t, n.Names(), "there is no cell")
	for i := range 12 {
		n.Last, n.Write = n.Names(), string(rune('a'+i))
	}
	require.Equal(t, "l", n.Write)
	require.Equal(t, strings.Split("k j i h g f e d", " "), n.Last)

	n = node(asNode)
	n.Owner += strings.Repeat("x", stores.MaxValue-len(n.Encode()))
	for longer, names := range []int{2, 1} {
		n.Owner += strings.Repeat("x", longer)
		got, err := DecodeNode(n.Encode())
		require.NoError(t, err)
		require.Equal(t, n.Last[:names], got.Last, "the newest stay")
	}
	require.Len(t, n.Last, 2, "the value that was written is as it was")
	n.Owner = strings.Repeat("x", stores.MaxValue)
	require.Error(t, stores.CheckValue(n.Encode()), "no name is left to go")
}

// TestStoreNames: the name of a store shows no password, and is one line, also if it was edited in its cell.
func TestStoreNames(t *testing.T) {
	for _, to := range []string{
		"the new store", strings.Repeat("x", MaxTo), "./ids", "file:/var/lib/ids", "postgres://[::1]:5432/ids",
		"etcd://etcd-0.etcd.infra.svc.cluster.local:2379,etcd-1.etcd.infra.svc.cluster.local:2379,etcd-2.etcd.infra.svc.cluster.local:2379",
	} {
		require.NoError(t, CheckTo(to))
		require.Equal(t, to, Where(to))
	}
	for _, to := range []string{
		"", strings.Repeat("x", MaxTo+1), strings.Repeat("<", MaxTo/5), "two\nlines", "\x1b[2J", "\xff",
		"user:s3cr3t@tcp(h)/d", "host=h pwd=s3cr3t", "h:6379,Password: s3cr3t", "redis://h#s3cr3t", "redis://h?s3cr3t", "redis%3A%2F%2F:s3cr3t%40h",
	} {
		err := CheckTo(to)
		require.Error(t, err, to)
		require.NotContains(t, err.Error(), "s3cr3t")
		require.Equal(t, "another store", Where(to))
	}
}

func TestNodeKeys(t *testing.T) {
	for _, node := range []int64{0, 7, 1023, MaxNodes - 1} {
		key := NodeKey(node)
		require.NoError(t, stores.CheckKey(key))
		got, ok := NodeOf(key)
		require.True(t, ok)
		require.Equal(t, node, got)
	}
	for _, key := range []string{"", "layout", "0000007", "node/7", "node/00000007", "node/+000007", "node/-000007", "node/4194304", "seq/0000007"} {
		_, ok := NodeOf(key)
		require.False(t, ok, key)
	}
	require.Less(t, NodeKey(99), NodeKey(100), "in the order of their numbers")
}

// TestIndexes: the numbers of a sequence, and how many there are.
func TestIndexes(t *testing.T) {
	for _, test := range []struct {
		change        func(*Sequence)
		indexes, left uint64
	}{
		{asSequence, 100, 60},
		{func(r *Sequence) { r.Max = 514 }, 101, 61}, // the stride skips it
		{func(r *Sequence) { r.Max = 515 }, 102, 62},
		{func(r *Sequence) { r.Max, r.Next = 300, 90 }, 59, 0},
		{func(r *Sequence) { r.Offset, r.Max = 3, 23 }, 3, 0},
		{func(r *Sequence) { *r = Sequence{Stride: 1, Max: math.MaxInt64} }, MaxIndex, MaxIndex}, // a window has no more
		{func(r *Sequence) { *r = Sequence{} }, 0, 0},
	} {
		r := sequence(test.change)
		assert.Equal(t, []uint64{test.indexes, test.left}, []uint64{r.Indexes(), r.Left()}, "%+v", r)
	}
	r := sequence(func(r *Sequence) { r.Offset = 3 })
	assert.Equal(t, []int64{508, 208}, []int64{r.Number(99), r.LastNumber()})
	for number, index := range map[uint64]uint64{0: 0, 13: 0, 14: 1, 18: 1, 19: 2} {
		assert.Equal(t, index, r.Index(number), number)
	}
	assert.EqualValues(t, 209, r.Granted())
	r.Before = 300
	assert.EqualValues(t, 300, r.Granted())
	r.Most = 0
	assert.EqualValues(t, 300, r.Granted())
	r.Before = 0
	assert.Zero(t, r.Granted())
}

// zeros is the random state of a copied machine: all copies read the same.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestTokens: two copies of a machine draw the same random bytes, and a clock that stands still leaves these.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { assert.NotEqual(t, Token(), Token()) })
	system := rand.Reader
	t.Cleanup(func() { rand.Reader = system })
	rand.Reader = zeros{}
	seen := map[string]bool{}
	for range 1000 {
		token := Token()
		b, err := hex.DecodeString(token)
		require.NoError(t, err)
		require.Len(t, b, 12)
		seen[token] = true
	}
	assert.Len(t, seen, 1000)
}

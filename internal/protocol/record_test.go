package protocol_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/protocol"
	"github.com/tickflake/tickflake/stores"
)

var some = protocol.Record{
	Format: protocol.Format, Holder: "0123456789ab", Owner: "host-1, process 77", Limit: 123456789, Until: "2029-06-01T12:00:30.000Z",
	Window: 30000, Write: "ba9876543210", Layout: "time:41|node:10|sequence:12 tick:1ms epoch:2026-01-01T00:00:00Z",
}

func TestRecord(t *testing.T) {
	text := string(some.Encode())
	got, err := protocol.Decode([]byte(text))
	require.NoError(t, err)
	require.Equal(t, some, got)
	require.LessOrEqual(t, len(text), stores.MaxValue)

	for name, value := range map[string]string{
		"empty":           "",
		"cut":             text[:len(text)/2],
		"cut by one":      text[:len(text)-1],
		"more text":       text + "x",
		"two objects":     text + text,
		"another format":  `{"format":2,"limit":7,"write":"w","layout":"l"}`,
		"no format":       `{"limit":7,"write":"w","layout":"l"}`,
		"no name":         `{"format":1,"limit":7,"layout":"l"}`,
		"no layout":       `{"format":1,"limit":7,"write":"w"}`,
		"an unknown key":  `{"format":1,"limit":7,"write":"w","layout":"l","more":1}`,
		"zeros":           string(make([]byte, 200)),
		"no JSON":         "limit=7",
		"another type":    `{"format":1,"limit":"7","write":"w","layout":"l"}`,
		"below zero":      `{"format":1,"limit":-7,"write":"w","layout":"l"}`,
		"too large":       `{"format":1,"limit":99999999999999999999999,"write":"w","layout":"l"}`,
		"somebody else's": "tickflake1 00000000 {}",
	} {
		_, err := protocol.Decode([]byte(value))
		require.ErrorIs(t, err, stores.ErrDamaged, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

func TestLayoutRecord(t *testing.T) {
	r, err := protocol.DecodeLayout(protocol.LayoutRecord{Layout: some.Layout}.Encode())
	require.NoError(t, err)
	require.Equal(t, some.Layout, r.Layout)
	for _, value := range []string{"", "{}", `{"format":2,"layout":"l"}`, string(some.Encode())} {
		_, err := protocol.DecodeLayout([]byte(value))
		require.ErrorIs(t, err, stores.ErrDamaged, value)
	}
}

// TestCheckTo: a name shows no password, and is one line, also one that was edited in its cell.
func TestCheckTo(t *testing.T) {
	for _, to := range []string{
		"the new store", "./ids", "file:/var/lib/ids", "postgres://[::1]:5432/ids",
		"etcd://etcd-0.etcd.infra.svc.cluster.local:2379,etcd-1.etcd.infra.svc.cluster.local:2379,etcd-2.etcd.infra.svc.cluster.local:2379",
	} {
		require.NoError(t, protocol.CheckTo(to))
		require.Equal(t, to, (&protocol.Move{To: to}).Where())
	}
	for _, to := range []string{
		"", strings.Repeat("x", protocol.MaxTo+1), strings.Repeat("<", protocol.MaxTo/5), "two\nlines", "\x1b[2J", "\xff",
		"user:s3cr3t@tcp(h)/d", "host=h pwd=s3cr3t", "h:6379,Password: s3cr3t", "redis://h#s3cr3t", "redis://h?s3cr3t", "redis%3A%2F%2F:s3cr3t%40h",
	} {
		err := protocol.CheckTo(to)
		require.Error(t, err, to)
		require.NotContains(t, err.Error(), "s3cr3t")
		require.Equal(t, "another store", (&protocol.Move{To: to}).Where())
	}
}

func TestNodeKeys(t *testing.T) {
	for _, node := range []int64{0, 7, 1023, protocol.MaxNodes - 1} {
		key := protocol.NodeKey(node)
		require.NoError(t, stores.CheckKey(key))
		got, ok := protocol.NodeOf(key)
		require.True(t, ok)
		require.Equal(t, node, got)
	}
	for _, key := range []string{"", "layout", "node/7", "node/00000007", "node/+000007", "node/-000007", "node/4194304", "seq/0000007"} {
		_, ok := protocol.NodeOf(key)
		require.False(t, ok, key)
	}
	require.Less(t, protocol.NodeKey(99), protocol.NodeKey(100), "in the order of their numbers")
}

// Whatever a cell holds, it is a record that reads the same again, or refused.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(""))
	f.Add(some.Encode())
	f.Add(some.Encode()[:100])
	f.Add([]byte(`{"format":1,"limit":7,"write":"w","layout":"l","window":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := protocol.Decode(value)
		if err != nil {
			require.ErrorIs(t, err, stores.ErrDamaged)
			return
		}
		again, err := protocol.Decode(r.Encode())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}

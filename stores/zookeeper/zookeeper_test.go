package zookeeper

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	storetest.TestURLs(t, open, "zk://u:SECRET@h", map[string]string{
		"zk://u:SECRET@h/a//b":     "bad path after the host; want the chroot",
		"zk://u:SECRET@h/./x":      "bad path after the host; want the chroot",
		"zk://u@h":                 "a user without a password, or",
		"zk://:SECRET@h/x//":       "a user without a password, or",
		"zk://u:SECRET@h?x=SECRET": "there are namespace, cacert, cert, key",
	})
}

// A round begins with the server after the last good one, and ends with it, so that the
// driver waits only once all have been tried.
func TestServers(t *testing.T) {
	var h servers
	require.NoError(t, h.Init([]string{"a", "b", "c"}))
	require.Equal(t, 3, h.Len())
	want := func(host string, round bool) {
		t.Helper()
		h, r := h.Next()
		assert.Equal(t, host, h)
		assert.Equal(t, round, r, host)
	}
	want("a", false)
	want("b", false)
	h.Connected()
	want("c", false)
	want("a", false)
	want("b", true)
	want("c", false)
}

// What a server says that starts, stops, fails over or refuses has its kind, and what to do.
func TestKinds(t *testing.T) {
	for err, want := range map[error]stores.Kind{
		zk.ErrConnectionClosed: stores.Transient, zk.ErrNoServer: stores.Transient, zk.ErrClosing: stores.Transient, zk.ErrSessionExpired: stores.Transient,
		zk.ErrSessionMoved: stores.Transient, zk.ErrNoAuth: stores.Permanent, zk.ErrNoChildrenForEphemerals: stores.Permanent,
	} {
		got := refused(err)
		assert.Equal(t, want, stores.KindOf(got), "%v", got)
		assert.Equal(t, want == stores.Transient, strings.Contains(got.Error(), "maxClientCnxns"), "%v", got)
	}
}

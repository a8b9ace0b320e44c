package redis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// A server that refuses the connection is the cause that Open names, also after a second. One of another kind is refused.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(nil)
	defer web.Close()
	_, err := stores.Open(t.Context(), "redis://"+web.Listener.Addr().String())
	require.ErrorIs(t, err, stores.Permanent)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = stores.Open(ctx, "redis://127.0.0.1:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// URLs that no engine takes are tried in package engine.
func TestBadURLs(t *testing.T) {
	storetest.TestURLs(t, open, "redis://u:SECRET@h", map[string]string{
		"redis://SECRET@h":                "a user and no password",
		"redis://":                        "no host",
		"redis://u:SECRET@h/x":            "withheld, since it may show a password; it is about: database number",
		"redis://u:SECRET@h/0/1":          "URL path",
		"redis://u:SECRET@h?replicas=101": "replicas",
		// The secret is in an unusual place.
		"redis://h/SECRET":                 "database number",
		"redis://:p@h/0/SECRET":            "URL path",
		"redis://h?password=SECRET":        "unexpected option",
		"redis://h?SECRET=1":               "unexpected option",
		"redis://h?pool_size=SECRET":       "pool_size",
		"redis://h?read_timeout=%00SECRET": "read_timeout",
		"redis://h?replicas=SECRET":        "replicas",
		"redis://h:SECRET":                 "malformed",
	})
	for _, rawURL := range []string{"rediss://:p@h:1/2?read_timeout=5&replicas=3&namespace=A-b", "redis://[::1]:1"} {
		store, err := open(t.Context(), rawURL)
		require.NoError(t, err, rawURL)
		require.NoError(t, store.Close())
		require.NoError(t, store.Close(), "again")
	}
}

func TestNewOfBadThings(t *testing.T) {
	client := driver.NewClient(&driver.Options{})
	defer func() { _ = client.Close() }()
	for i, c := range []struct {
		client    *driver.Client
		namespace string
		replicas  int
		want      string
	}{
		{client, "a b", 0, `namespace "a b"`},
		{client, "a", -1, "redis.New: -1 replicas, want 0 to 100"},
		{client, "a", 101, "redis.New: 101 replicas, want 0 to 100"},
		{nil, "a", 0, "no client"},
	} {
		_, err := New(c.client, c.namespace, c.replicas)
		assert.ErrorContains(t, err, c.want, fmt.Sprint(i))
	}
}

// serve answers the words of a client that answers has, and ends each connection after an answer that is cut off. Without a
// word, it answers the connection itself.
func serve(t *testing.T, answers map[string]string) (addr string) {
	return storetest.Serve(t, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		_, _ = conn.Write([]byte(answers[""]))
		for lines := bufio.NewScanner(conn); answers[""] == "" && lines.Scan(); {
			answer, ok := answers[lines.Text()]
			_, _ = conn.Write([]byte(answer))
			if ok && !strings.HasSuffix(answer, "\r\n") {
				return
			}
		}
	})
}

// with returns the answers of a server, and one to EVAL.
func with(eval string) map[string]string {
	return map[string]string{"hello": "-ERR unknown command\r\n", "client": "+OK\r\n", "eval": eval, "wait": ":1\r\n"}
}

// An answer that says nothing, as of a proxy, is no success, although the replicas confirm it.
func TestAnswerWithoutResult(t *testing.T) {
	client := driver.NewClient(&driver.Options{Addr: serve(t, with("$-1\r\n"))})
	defer func() { _ = client.Close() }()
	store, err := New(client, "a", 1)
	require.NoError(t, err)
	_, err = store.Swap(t.Context(), "k", 0, nil)
	require.Error(t, err)
	assert.NotErrorIs(t, err, stores.ErrConflict)
}

// A connection that is lost in the middle of the questions leaves no setting unknown.
func TestCutQuestions(t *testing.T) {
	store, err := open(t.Context(), "redis://"+serve(t, map[string]string{"hello": "-ERR unknown command\r\n", "client": "+OK\r\n", "ping": "+PONG\r\n", "config": "*"}))
	require.NoError(t, err)
	defer store.Close()
	_, err = stores.CheckDurability(t.Context(), store)
	assert.Equal(t, stores.Transient, stores.KindOf(err), "%v", err)
}

// What a server says that starts, stops, is killed, fails over or refuses for load is passing, and the error says what helps.
func TestKinds(t *testing.T) {
	logging.Disable()
	for want, answers := range map[string]map[string]string{
		"unexpected EOF":                with("$30\r\n5 v"), // which is no damage
		"EOF":                           with(":"),
		"loads its data":                with("-LOADING Redis is loading the dataset in memory\r\n"),
		"raise it":                      with("-OOM command not allowed when used memory > 'maxmemory'. script: 6d37, on @user_script:8.\r\n"),
		"look at the replicas":          with("-ERR Error running script (call to f_6d37): @user_script:8: @user_script: 8: -NOREPLICAS Not enough good replicas to write.\r\n"),
		"wait for the failover":         with("-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n"),
		"SCRIPT KILL":                   with("-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"),
		"the cluster lacks servers":     with("-CLUSTERDOWN Hash slot not served\r\n"),
		"moves the cells":               with("-TRYAGAIN Multiple keys request during rehashing of slot\r\n"),
		"use a server that is in none":  with("-MOVED 3999 127.0.0.1:6381\r\n"),
		"look at the disk":              with("-MISCONF Errors writing to the AOF file: No space left on device\r\n"),
		"raise maxclients":              {"": "-ERR max number of clients reached\r\n"},
		"the server answered nothing: ": {"hello": ""},
	} {
		store, err := open(t.Context(), "redis://"+serve(t, answers))
		require.NoError(t, err)
		_, err = store.Swap(t.Context(), "k", 5, nil)
		assert.ErrorContains(t, err, want)
		kind := stores.Transient
		if strings.HasPrefix(answers["eval"], "-MOVED") { // for good
			kind = stores.Permanent
		}
		assert.Equal(t, kind, stores.KindOf(err), "%v", err)
		require.NoError(t, store.Close())
	}
}

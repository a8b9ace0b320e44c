package main

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

// placeOf parses the flags of a place.
func placeOf(args ...string) (*place, error) {
	cmd := &cobra.Command{}
	p := placeFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	return p, p.check()
}

func TestDirectoryOfPlace(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/home/me/state")
	const layout = "node10-sequence12-tick1ms-epoch20250101T000000Z"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "/home/me/state/tickflake/" + layout},
		{[]string{"--namespace", "orders"}, "/home/me/state/tickflake/" + layout + "/orders"},
		{[]string{"--state", "a/b"}, "a/b"},
		{[]string{"--state", "file:x?y=z"}, "file:x?y=z"}, // a strange name, but no URL
		{[]string{"--state", "/a", "--namespace", "orders"}, "/a/orders"},
		{[]string{"--store", "file:a/b"}, "a/b"},
		{[]string{"--store", "file:/a"}, "/a"},
		{[]string{"--store", "file:///a"}, "/a"},
		{[]string{"--store", "file://localhost/a"}, "/a"},
		{[]string{"--store", "file:a", "--namespace", "orders"}, "a/orders"},
		{[]string{"--store", "file:a?namespace=orders"}, "a/orders"},
	} {
		p, err := placeOf(tt.args...)
		require.NoError(t, err, tt.args)
		require.True(t, p.isDirectory())
		path, err := p.path(snowflake.Default())
		require.NoError(t, err, tt.args)
		assert.Equal(t, filepath.FromSlash(tt.want), path, tt.args)
	}
}

// The environment names the store where no flag does.
func TestStoreOfTheEnvironment(t *testing.T) {
	t.Setenv(storeVariable, "etcd://h?namespace=orders")
	p, err := placeOf()
	require.NoError(t, err)
	assert.Equal(t, "etcd://h?namespace=orders", p.fullURL())
	p, err = placeOf("--store", "redis://r")
	require.NoError(t, err)
	assert.Equal(t, "redis://r", p.fullURL())
	p, err = placeOf("--state", "a")
	require.NoError(t, err)
	assert.True(t, p.isDirectory())
	_, err = placeOf("--namespace", "other")
	assert.ErrorContains(t, err, "--namespace does not go with")

	t.Setenv(storeVariable, "oracle://me:secret@h")
	_, err = placeOf()
	assert.ErrorContains(t, err, `$TICKFLAKE_STORE: unknown scheme "oracle"`)
	assert.NotContains(t, err.Error(), "secret")
}

func TestURLOfPlace(t *testing.T) {
	for _, tt := range []struct{ url, namespace, want string }{
		{"etcd://h", "", "etcd://h"},
		{"REDIS://h/0", "", "redis://h/0"},
		{"postgres://u:p@h/d?sslmode=disable", "", "postgres://u:p@h/d?sslmode=disable"},
		{"nats://h", "orders", "nats://h?namespace=orders"},
		{"postgres://u:p@h/d?sslmode=disable", "orders", "postgres://u:p@h/d?sslmode=disable&namespace=orders"},
	} {
		args := []string{"--store", tt.url}
		if tt.namespace != "" {
			args = append(args, "--namespace", tt.namespace)
		}
		p, err := placeOf(args...)
		require.NoError(t, err)
		assert.Equal(t, tt.want, p.fullURL())
	}
}

func TestBadStores(t *testing.T) {
	for url, want := range map[string]string{
		"":                      "no scheme",
		"host":                  "no scheme",
		"user:pass@host":        "no scheme",
		"s3cr3t@host://x":       "no scheme",
		"consul://h":            `unknown scheme "consul"`,
		"file:":                 "file: needs the name of a directory",
		"file:?namespace=a":     "file: needs the name of a directory",
		"file://host/a":         "file://HOST names a directory of another host",
		"file:a?x=y":            "the only option of file: is ?namespace=NAME",
		"file:a?namespace=..":   `namespace ".."`,
		"file:a?namespace=../x": `namespace "../x"`,
	} {
		got := tickflake("lease", "list", "--store", url)
		assert.Equal(t, 2, got.code, url)
		assert.Contains(t, got.err, "tickflake: --store: "+want, url)
		assert.NotContains(t, got.err, "pass@", url)
	}
	_, err := placeOf("--store", "consul://h")
	var unknown *schemeError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, "consul", unknown.Scheme)
	assert.Equal(t, storeSchemes, unknown.Known)
	for _, scheme := range storeSchemes[1:] {
		assert.Contains(t, openers, scheme)
		assert.Contains(t, err.Error(), " "+scheme+"://")
	}
	assert.Len(t, openers, len(storeSchemes)-1)
}

// closed is an address that nobody listens at.
const closed = "127.0.0.1:1"

// silent returns an address where somebody listens who never says a word.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestUnreachableStores(t *testing.T) {
	silent := silent(t)
	for _, scheme := range storeSchemes[1:] {
		for _, addr := range []string{closed, silent} {
			for _, command := range []string{"lease list", "lease show 7", "lease release 7 --yes", "generate"} {
				t.Run(scheme+" "+command, func(t *testing.T) {
					t.Parallel()
					args := strings.Fields(command + " --timeout 300ms --store " + scheme + "://s3cr3tuser:s3cr3t@" + addr)
					if slices.Contains([]string{"mysql", "postgres", "postgresql"}, scheme) {
						args[len(args)-1] += "/db"
					}
					began := time.Now()
					got := tickflake(args...)
					// The last word of a driver may take a moment.
					assert.Less(t, time.Since(began), 10*time.Second)
					assert.Equal(t, 1, got.code, got.err)
					assert.Empty(t, got.out)
					assert.NotEmpty(t, got.err)
					assert.NotContains(t, got.err, "s3cr3t@")
					assert.NotContains(t, got.err, ":s3cr3t")
				})
			}
		}
	}
}

// What the Redis driver only logs is the reason that people want to know.
func TestRedisSaysWhyThereIsNoConnection(t *testing.T) {
	dialing.last.Store(nil) // what another test left
	got := tickflake("lease", "list", "--store", "redis://"+closed, "--timeout", "1s")
	assert.Contains(t, got.err, "refused")
	var nobody dialLog
	assert.Equal(t, context.DeadlineExceeded, nobody.explain("redis", context.DeadlineExceeded))
	assert.Equal(t, context.DeadlineExceeded, dialing.explain("etcd", context.DeadlineExceeded))
	other := errors.New("other")
	assert.Equal(t, other, dialing.explain("redis", other))
}

func TestCredentialsNeverShow(t *testing.T) {
	for _, url := range []string{
		"postgres://u:s3cr3t@h:port/d", "postgres://u:s3cr3t/x@h/d", "postgres:u:s3cr3t@h/d", "postgres://u:s3cr3t@[::1/d", "mysql://u:s3cr3t@h",
		"mysql://u:s3cr3t#x@h/d", "redis://u:s3cr3t@h:x", "redis://:s3cr3t@h/x", "redis://s3cr3t@h", "nats://u:s3cr3t@h:x", "nats://u:s3cr3t?@h",
		"etcd://u:s3cr3t@", "etcd://u:s3cr3t@h/x", "zk://u:s3cr3t%@h", "zk://u:s3cr3t@h//", "amqp://u:s3cr3t@h", "s3cr3t", "u:s3cr3t@h", "file://u:s3cr3t@h/x",
		"redis://h?password=s3cr3t&namespace=a&namespace=b",
	} {
		for _, command := range []string{"lease list", "generate"} {
			got := tickflake(append(strings.Fields(command), "--timeout", "100ms", "--store", url)...)
			assert.NotZero(t, got.code, url)
			assert.NotContains(t, got.out+got.err, "s3cr3t", url)
		}
	}
}

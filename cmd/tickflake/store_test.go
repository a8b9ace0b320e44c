package main

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tickflake/tickflake/stores"
)

func TestBadStores(t *testing.T) {
	for url, want := range map[string]string{
		"":                    "want a directory or a URL",
		"host:7":              "it has no scheme",
		"user:pass@host":      "it has no scheme",
		"s3cr3t@host://x":     "it begins with no scheme",
		"consul://h":          "unknown scheme",
		"file:":               "it names no directory",
		"file:a?namespace=..": `namespace ".."`,
	} {
		got := tickflake("generate", "--store", url)
		assert.Equal(t, 2, got.code, url)
		assert.Regexp(t, "^tickflake: --store: .*"+regexp.QuoteMeta(want), got.err, url)
		assert.NotContains(t, got.err, "pass@", url)
	}
}

// The environment names the store if no flag does.
func TestStoreOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(storeVariable, dir)
	require.Zero(t, tickflake("generate", "--node", "7").code)
	assert.Equal(t, int64(7), inspect(t, dir).Node)
	other := t.TempDir()
	require.Zero(t, tickflake("generate", "--node", "8", "--store", other).code)
	assert.Equal(t, int64(8), inspect(t, other).Node)

	t.Setenv(storeVariable, "oracle://me:secret@h")
	got := tickflake("generate")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.err, "tickflake: $TICKFLAKE_STORE: ")
	assert.NotContains(t, got.err, "secret")
}

// Every scheme that completion offers has its engine in the program.
func TestSchemesHaveEngines(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, scheme := range storeSchemes[1:] {
		_, err := stores.Open(ctx, scheme+"127.0.0.1:1/db")
		require.Error(t, err, scheme)
		assert.NotContains(t, err.Error(), "does not import the engine", scheme)
		assert.NotContains(t, err.Error(), "unknown scheme", scheme)
	}
}

// closed is an address without a listener.
const closed = "127.0.0.1:1"

// silent returns the address of a listener that never answers.
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
			for _, command := range []string{"lease list", "generate", "sequence next orders"} {
				t.Run(scheme+" "+command, func(t *testing.T) {
					t.Parallel()
					url := scheme + "s3cr3tuser:s3cr3t@" + addr
					if slices.Contains([]string{"mysql://", "postgres://"}, scheme) {
						url += "/db"
					}
					began := time.Now()
					got := tickflake(append(strings.Fields(command), "--timeout", "300ms", "--store", url)...)
					// The last error of a driver may take a moment.
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

func TestCredentialsNeverShow(t *testing.T) {
	for _, url := range []string{
		"postgres://u:s3cr3t@h:port/d", "postgres://u:s3cr3t/x@h/d", "postgres:u:s3cr3t@h/d", "postgres://u:s3cr3t@[::1/d", "mysql://u:s3cr3t@h",
		"mysql://u:s3cr3t#x@h/d", "redis://u:s3cr3t@h:x", "redis://:s3cr3t@h/x", "redis://s3cr3t@h", "nats://u:s3cr3t@h:x", "nats://u:s3cr3t?@h",
		"etcd://u:s3cr3t@", "etcd://u:s3cr3t@h/x", "zk://u:s3cr3t%@h", "zk://u:s3cr3t@h//", "amqp://u:s3cr3t@h", "u:s3cr3t@h", "host=h password=s3cr3t", "file://u:s3cr3t@h/x",
		"redis://h?password=s3cr3t&namespace=a&namespace=b",
	} {
		for _, command := range []string{"lease list", "generate", "sequence list", "serve --print-config"} {
			got := tickflake(append(strings.Fields(command), "--timeout", "100ms", "--store", url)...)
			assert.True(t, got.code != 0 || command == "serve --print-config", url)
			assert.NotContains(t, got.out+got.err, "s3cr3t", url)
		}
	}
}

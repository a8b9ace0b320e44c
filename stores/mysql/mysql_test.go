package mysql

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestLockTimeoutsOfURL(t *testing.T) {
	for rawURL, want := range map[string]string{"mysql://h/ops": "1", "mysql://u@[::1]:3307/ops?tls=true&loc=Europe/Berlin&charset=utf8mb4,utf8&lock_wait_timeout=7": "7"} {
		u, err := engine.ParseDriverURL(rawURL, []string{"mysql"}, "table")
		require.NoError(t, err)
		config, err := configOf(u)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"innodb_lock_wait_timeout": "1", "lock_wait_timeout": want}, config.Params)
	}
}

// URLs that no engine takes are tried in package engine.
func TestBadURLs(t *testing.T) {
	storetest.TestURLs(t, open, "mysql://u:SECRET@h/d", map[string]string{
		"mysql://u:SECRET@(h)/d":                         "host",
		"mysql://u:SECRET@h/":                            "no database",
		"mysql://u:SECRET@/d":                            "no host",
		"mysql://u:SECRET@h/d?socket=/run/s":             "a host and a socket",
		"mysql://h/d?socket=SECRET":                      "a host and a socket",
		"mysql://u:SECRET@h/d?table=a.b.c":               "the parameter table cannot be used: table \"a.b.c\": want",
		"mysql://u:SECRET@h/d?table=":                    "the parameter table cannot be used: ",
		"mysql://u:SECRET@h/d?strict=true":               "the parameter strict",
		"mysql://u:SECRET@h/d?interpolateParams=10":      "about: interpolateParams",
		"mysql://u:SECRET@h/d?collation=big5_chinese_ci": "about: collation",
		// The secret is in an unusual place.
		"mysql://h/d?tls=SECRET":          "withheld, since it may show a password; it is about: tls",
		"mysql://h/d?timeout=%00SECRET":   "about: timeout",
		"mysql://h/d?readTimeout=SECRET":  "about: readTimeout",
		"mysql://h/d?loc=../SECRET":       "about: loc",
		"mysql://h/d?serverPubKey=SECRET": "about: serverPubKey",
		"mysql://h/SECRET?tls=nope":       "about: tls",
		"mysql://SECRET@h/d?tls=nope":     "about: tls",
	})
}

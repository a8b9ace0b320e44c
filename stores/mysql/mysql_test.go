package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/mysql"
)

func TestLockTimeoutsOfURL(t *testing.T) {
	params, err := mysql.Params("mysql://h/ops")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"innodb_lock_wait_timeout": "1", "lock_wait_timeout": "1"}, params)
	params, err = mysql.Params("mysql://h/ops?lock_wait_timeout=7")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"innodb_lock_wait_timeout": "1", "lock_wait_timeout": "7"}, params)
}

func TestOpenOfBadURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"postgres://u:s3cret@h/d":                        "begins with mysql://",
		"u:s3cret@tcp(h)/d":                              "begins with mysql://",
		"mysql://u:s3cret@tcp(h:1)/d":                    "",
		"mysql://u:s3cret@(h)/d":                         "host",
		"mysql://u:s3cret@h:x/d":                         "malformed",
		"mysql://u:s3/cret@h/d":                          "percent-encode",
		"mysql://u:1/s3cret@h/d":                         "percent-encode",
		"mysql://u:s3cret@h":                             "no database",
		"mysql://u:s3cret@h/":                            "no database",
		"mysql://u:s3cret@/d":                            "no host",
		"mysql:///d":                                     "no host",
		"mysql://u:s3cret@h/d?socket=/run/s":             "a host and a socket",
		"mysql://u:s3cret@h/d?tls=nonsense":              "withheld, since it may show a password; it is about: tls",
		"mysql://u:s3cret@h/d?timeout=nonsense":          "about: timeout",
		"mysql://u:s3cret@h/d?interpolateParams=10":      "about: interpolateParams",
		"mysql://u:s3cret@h/d?namespace=a.b":             "holds '.'",
		"mysql://u:s3cret@h/d?table=a.b.c":               "the parameter table cannot be used: table \"a.b.c\": want",
		"mysql://u:s3cret@h/d?table=":                    "the parameter table cannot be used: ",
		"mysql://u:s3cret@h/d?table=a&table=b":           "twice",
		"mysql://u:s3cret@h/d?loc=Europe/Nowhere":        "about: loc",
		"mysql://u:s3cret@h/d?collation=big5_chinese_ci": "about: collation",
		"mysql://u:s3cret@h/d?strict=true":               "the parameter strict",
		// In an unusual place.
		"mysql://h/d?tls=s3cret":              "about: tls",
		"mysql://h/d?tls=%22s3cret":           "about: tls",
		"mysql://h/d?timeout=s3cret":          "about: timeout",
		"mysql://h/d?timeout=%00s3cret":       "about: timeout",
		"mysql://h/d?readTimeout=s3cret":      "about: readTimeout",
		"mysql://h/d?writeTimeout=s3cret":     "about: writeTimeout",
		"mysql://h/d?timeTruncate=s3cret":     "about: timeTruncate",
		"mysql://h/d?loc=s3cret":              "about: loc",
		"mysql://h/d?loc=../s3cret":           "about: loc",
		"mysql://h/d?serverPubKey=s3cret":     "about: serverPubKey",
		"mysql://h/d?parseTime=s3cret":        "about: parseTime",
		"mysql://h/d?maxAllowedPacket=s3cret": "about: maxAllowedPacket",
		"mysql://h/d?s3cret=1&tls=s3cret":     "about: tls",
		"mysql://h/s3cret?tls=nope":           "about: tls",
		"mysql://s3cret@h/d?tls=nope":         "about: tls",
		"mysql://s3cret/d?tls=nope":           "about: tls",
		"mysql://h/d?socket=s3cret":           "a host and a socket",
	} {
		store, err := mysql.Open(t.Context(), rawURL)
		require.Nil(t, store, rawURL)
		bad, ok := errors.AsType[*stores.URLError](err)
		require.True(t, ok, "%s: %v", rawURL, err)
		assert.Contains(t, bad.Error(), want, rawURL)
		for e := err; e != nil; e = errors.Unwrap(e) {
			text := fmt.Sprintf("%v %+v %#v", e, e, e)
			assert.NotContains(t, text, "s3", rawURL)
			assert.NotContains(t, text, "cret", rawURL)
		}
	}
	for _, rawURL := range []string{"mysql://h/d", "mysql://u@[::1]:3307/d?tls=true", "mysql://u:p@h/d?loc=Europe/Berlin&charset=utf8mb4,utf8"} {
		store, err := mysql.Open(t.Context(), rawURL)
		require.NoError(t, err, rawURL)
		require.NoError(t, store.Close())
	}
	_, err := mysql.New(new(sql.DB), "a b")
	assert.ErrorContains(t, err, "namespace \"a b\"")
}

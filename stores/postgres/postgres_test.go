package postgres_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/postgres"
)

func TestOpenOfBadURLs(t *testing.T) {
	for rawURL, want := range map[string]string{
		"mysql://u:s3cret@h/d":                              "begins with postgres:// or postgresql://",
		"postgres://u:s3cret@h:99999/d":                     "port",
		"postgres://u:s3cret@h:x/d":                         "malformed",
		"postgres://u:s3cret%@h/d":                          "malformed",
		"postgres://u:s3/cret@h/d":                          "percent-encode",
		"postgres://u:1/s3cret@h/d":                         "percent-encode",
		"postgres://u:s3cret@h/d?sslmode=nonsense":          "sslmode",
		"postgres://u@h/d?password=s3cret&sslmode=nonsense": "does not take it",
		"postgres://u:s3cret@h/d?connect_timeout=s3cret":    "withheld, since it may show a password; it is about: connect_timeout",
		"postgres://u:s3cret@h/d?sslrootcert=/s3cret/file":  "CA, TLS; a file that the URL names does not exist",
		"postgres://u:s3cret@h/d?namespace=a.b":             "holds '.'",
		"postgres://u:s3cret@h/d?table=a%3Bdrop":            "the parameter table cannot be used: table \"a;drop\": want",
		"postgres://u:s3cret@h/d?target_session_attrs=any1": "target_session_attrs",
		// In an unusual place.
		"postgres://127.0.0.1/d?pwd=s3cret&sslmode=nope":              "sslmode",
		"postgres://s3cret@h/d?sslmode=nope":                          "sslmode",
		"postgres://u@h/d:s3cret?sslmode=nope":                        "sslmode",
		"postgres://u:p@h/s3cret?sslmode=nope":                        "sslmode",
		"postgres://u:p@s3cret/d?sslmode=nope":                        "sslmode",
		"postgres:///d?host=s3cret&sslmode=nope":                      "sslmode",
		"postgres://h/d?port=s3cret":                                  "port",
		"postgres://h/d?port=1,2,3&host=s3cret,cret":                  "port",
		"postgres://h/d?s3cret&sslmode=nope":                          "does not take it",
		"postgres://h/d?s3cret=1&sslmode=nope":                        "sslmode",
		"postgres://h/d?sslmode=s3cret":                               "sslmode",
		"postgres://h/d?sslmode=%60%3A+s3cret":                        "sslmode",
		"postgres://h/d?pwd=`: s3cret&sslmode=nope":                   "sslmode",
		"postgres://h/d?target_session_attrs=s3cret":                  "target_session_attrs",
		"postgres://h/d?channel_binding=s3cret":                       "channel_binding",
		"postgres://h/d?require_auth=s3cret":                          "require_auth",
		"postgres://h/d?min_protocol_version=s3cret":                  "min_protocol_version",
		"postgres://h/d?sslcertmode=s3cret":                           "sslcertmode",
		"postgres://h/d?default_query_exec_mode=s3cret":               "default_query_exec_mode",
		"postgres://h/d?statement_cache_capacity=s3cret":              "statement_cache_capacity",
		"postgres://h/d?service=s3cret&servicefile=s3cret":            "service",
		"postgres://h/d?sslcert=s3cret&sslmode=require":               "sslcert, sslkey",
		"postgres://h/d?sslcert=s3cret&sslkey=s3cret&sslmode=require": "does not exist",
		"postgres://h/d?p%61ssword=s3cret&sslmode=nope":               "sslmode",
		"postgres://u:s3%22cret@h/d?sslmode=nope":                     "sslmode",
	} {
		store, err := postgres.Open(t.Context(), rawURL)
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
	_, err := postgres.New(new(sql.DB), "a b")
	assert.ErrorContains(t, err, "namespace \"a b\"")
}

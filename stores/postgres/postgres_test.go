package postgres

import (
	"testing"

	"github.com/tickflake/tickflake/stores/storetest"
)

// URLs that no engine takes are tried in package engine.
func TestBadURLs(t *testing.T) {
	storetest.TestURLs(t, open, "postgres://u:SECRET@h/d", map[string]string{
		"postgres://u:SECRET@h:99999/d":                     "port",
		"postgres://u@h/d?password=SECRET&sslmode=nonsense": "does not take it",
		"postgres://u:SECRET@h/d?table=a%3Bdrop":            "the parameter table cannot be used: table \"a;drop\": want",
		"postgres://u:SECRET@h/d?target_session_attrs=any1": "target_session_attrs",
		// The secret is in an unusual place.
		"postgres://h/d?connect_timeout=SECRET":            "withheld, since it may show a password; it is about: connect_timeout",
		"postgres://h/d?sslrootcert=/SECRET/file":          "CA, TLS; a file that the URL names does not exist",
		"postgres://127.0.0.1/d?pwd=SECRET&sslmode=nope":   "sslmode",
		"postgres://SECRET@h/d?sslmode=nope":               "sslmode",
		"postgres://u@h/d:SECRET?sslmode=nope":             "sslmode",
		"postgres:///d?host=SECRET&sslmode=nope":           "sslmode",
		"postgres://h/d?port=1,2,3&host=SECRET,b":          "port",
		"postgres://h/d?SECRET&sslmode=nope":               "does not take it",
		"postgres://h/d?sslmode=%60%3A+SECRET":             "sslmode",
		"postgres://h/d?pwd=`: SECRET&sslmode=nope":        "sslmode",
		"postgres://h/d?target_session_attrs=SECRET":       "target_session_attrs",
		"postgres://h/d?default_query_exec_mode=SECRET":    "default_query_exec_mode",
		"postgres://h/d?service=SECRET&servicefile=SECRET": "service",
		"postgres://h/d?sslcert=SECRET&sslmode=require":    "sslcert, sslkey",
		"postgres://h/d?p%61ssword=SECRET&sslmode=nope":    "sslmode",
	})
}

package postgres

import (
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
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

// The files that a URL names are read for each connection, those of certificates as that of passwords.
func TestFilesAreReadAnew(t *testing.T) {
	dir := t.TempDir()
	passwords, authority := filepath.Join(dir, "passwords"), filepath.Join(dir, "authority.pem")
	came := make(chan string, 100)
	server := storetest.Serve(t, func(conn net.Conn) { // it takes a password in clear text, and says that it starts
		defer func() { _ = conn.Close() }()
		buffer := make([]byte, 1000)
		_, _ = conn.Read(buffer)
		_, _ = conn.Write([]byte("R\x00\x00\x00\x08\x00\x00\x00\x03"))
		n, _ := conn.Read(buffer)
		came <- strings.Trim(string(buffer[min(5, n):n]), "\x00")
		_, _ = conn.Write([]byte("E\x00\x00\x00\x19SFATAL\x00C57P03\x00Mwait\x00\x00"))
	})
	read := func(s stores.Store) error {
		_, err := s.Read(t.Context(), "node/7")
		assert.Equal(t, stores.Transient, stores.KindOf(err), "%v", err)
		assert.NotContains(t, err.Error(), dir)
		return err
	}
	s, err := open(t.Context(), "postgres://u@"+server+"/d?sslmode=disable&passfile="+passwords)
	require.NoError(t, err)
	defer s.Close()
	for _, password := range []string{"old", "new"} {
		require.NoError(t, os.WriteFile(passwords, []byte("*:*:*:*:"+password), 0o600))
		assert.ErrorContains(t, read(s), "57P03")
		assert.Equal(t, password, <-came)
	}
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600))
	secure, err := open(t.Context(), "postgres://u@"+server+"/d?sslmode=verify-full&sslrootcert="+authority)
	require.NoError(t, err)
	defer secure.Close()
	require.NoError(t, os.Remove(authority))
	assert.ErrorIs(t, read(secure), errFiles)
}

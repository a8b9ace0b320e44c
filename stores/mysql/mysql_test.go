package mysql

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestSettingsOfURL(t *testing.T) {
	for rawURL, want := range map[string]string{"mysql://h/ops": "1", "mysql://u@[::1]:3307/ops?tls=true&loc=Europe/Berlin&charset=utf8mb4,utf8&lock_wait_timeout=7": "7"} {
		u, err := engine.ParseDriverURL(rawURL, []string{"mysql"}, "table")
		require.NoError(t, err)
		config, err := configOf(u)
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"innodb_lock_wait_timeout": "1", "lock_wait_timeout": want, "autocommit": "1", "sql_mode": "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"}, config.Params)
	}
}

// URLs that no engine takes are tried in package engine.
func TestBadURLs(t *testing.T) {
	storetest.TestURLs(t, open, "mysql://u:SECRET@h/d", map[string]string{
		"mysql://u:SECRET@(h)/d":                         "host",
		"mysql://u:SECRET@h/":                            "no database",
		"mysql://u:SECRET@/d":                            "no host",
		"mysql://u:SECRET@h/d?table=a.b.c":               "the parameter table cannot be used: table \"a.b.c\": want",
		"mysql://u:SECRET@h/d?table=1a":                  "want up to 63",
		"mysql://u:SECRET@h/d?table=a%60":                "want up to 63",
		"mysql://u:SECRET@h/d?table=":                    "the parameter table cannot be used: ",
		"mysql://u:SECRET@h/d?strict=true":               "the parameter strict",
		"mysql://u:SECRET@h/d?sql_mode=":                 "sql_mode",
		"mysql://u:SECRET@h/d?AUTOCOMMIT=0":              "autocommit",
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

// Errors of the driver have the numbers of MySQL's own client.
func TestNumber(t *testing.T) {
	for err, want := range map[error]uint16{driver.ErrInvalidConn: 2013, &driver.MySQLError{Number: 1040}: 1040, io.EOF: 0} {
		assert.Equal(t, want, number(fmt.Errorf("wrapped: %w", err)))
	}
}

// However often callers give up, a server that goes on with their statements has no more than [dial.MaxConns] connections.
func TestConnectionsAreBounded(t *testing.T) {
	var accepted atomic.Int32
	server := storetest.Serve(t, func(conn net.Conn) {
		accepted.Add(1)
		greet(conn)
	})
	s, err := open(t.Context(), "mysql://u@"+server+"/d?allowNativePasswords=true")
	require.NoError(t, err)
	defer s.Close()
	for more := 3 * dial.MaxConns; more > 0; {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := s.Read(ctx, "node/7")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if accepted.Load() >= dial.MaxConns {
			more--
		}
	}
	assert.EqualValues(t, dial.MaxConns, accepted.Load())
}

// greet is a server that logs everybody in, and answers settings only.
func greet(conn net.Conn) {
	send := func(sequence byte, payload string) {
		_, _ = conn.Write(append([]byte{byte(len(payload)), 0, 0, sequence}, payload...))
	}
	const flags = "\x08\x82\xff\x02\x00\x08\x00" // the protocol of 4.1, a database, a plugin; utf8; autocommit
	send(0, "\x0a8.0.0\x00\x01\x00\x00\x00saltsalt\x00"+flags+"\x15"+string(make([]byte, 10))+"saltsaltsalt\x00mysql_native_password\x00")
	for header := make([]byte, 4); ; {
		if _, err := io.ReadFull(conn, header); err != nil {
			return
		}
		payload := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		if header[3] == 1 || bytes.HasPrefix(payload, []byte("\x03SET")) {
			send(header[3]+1, "\x00\x00\x00\x02\x00\x00\x00")
		}
	}
}

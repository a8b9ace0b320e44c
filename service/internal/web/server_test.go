package web

import (
	"bytes"
	"log"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A panic is seen, and what strangers make net/http say is not. Package service has all other tests.
func TestErrorLog(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	to := log.New(errorLog{slog.New(slog.NewTextHandler(&text, nil))}, "", 0)
	to.Print("http: TLS handshake error from 10.1.2.3:4: EOF")
	to.Print("http2: panic serving 10.1.2.3:4: a bug")
	assert.Regexp(t, `^\S+ level=ERROR msg="http2: panic serving 10.1.2.3:4: a bug\\n"\n$`, text.String())
}

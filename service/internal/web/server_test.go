package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// A bug cuts the connection of its request, and is logged. Package service has all other tests.
func TestPanic(t *testing.T) {
	t.Parallel()
	g, err := generator.New(generator.WithNode(1))
	require.NoError(t, err)
	defer func() { assert.NoError(t, g.Close()) }()
	var log bytes.Buffer
	s := New(issuer.New(issuer.Config{Generator: g, Logger: slog.New(slog.NewTextHandler(&log, nil))}), Options{
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }),
	})
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
		s.http.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost/metrics", nil))
	})
	assert.Contains(t, log.String(), `level=ERROR msg="a handler panicked: please report this" method="GET /metrics" panic="a bug"`)
	assert.Contains(t, log.String(), "code=internal")
}

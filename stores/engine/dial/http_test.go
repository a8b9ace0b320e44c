package dial_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

type body struct{ closed bool }

func (b *body) Read([]byte) (int, error) { return 0, io.EOF }
func (b *body) Close() error             { b.closed = true; return nil }

// A server that asks to wait is left alone for that long, by every request. What gives up closes its request.
func TestRetryAfter(t *testing.T) {
	for status, heeded := range map[int]bool{http.StatusTooManyRequests: true, http.StatusServiceUnavailable: true, http.StatusForbidden: false} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.Header().Set("Retry-After", "3000000000") // a minute counts
			w.WriteHeader(status)
		}))
		defer server.Close()
		client := http.Client{Transport: dial.NewTransport(new(dial.Dialer), 1, nil)}
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if asked == 0 {
				ctx = t.Context()
			}
			defer cancel()
			sent := new(body)
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, sent)
			require.NoError(t, err)
			defer func() { assert.True(t, sent.closed) }()
			answer, err := client.Do(r)
			if err == nil {
				err = answer.Body.Close()
			}
			return err
		}
		require.NoError(t, get())
		err := get()
		assert.Equal(t, heeded, asked == 1, "%d: %d requests", status, asked)
		if heeded {
			assert.Equal(t, stores.Passing, stores.KindOf(err))
			assert.Regexp(t, `asks to wait for (1m0|5\d)s`, err)
		}
	}
}

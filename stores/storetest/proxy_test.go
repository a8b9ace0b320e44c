package storetest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores/storetest"
)

// A connection stays with its server until it is cut, and later ones lead to the other.
func TestProxyTo(t *testing.T) {
	serve := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	proxy := storetest.NewProxy(t, serve("first"))
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	get := func(c *http.Client) string {
		answer, err := c.Get("http://" + proxy.Addr())
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return string(text)
	}
	assert.Equal(t, "first", get(client))
	proxy.To(serve("second"))
	assert.Equal(t, "first", get(client))
	other := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(other.CloseIdleConnections)
	assert.Equal(t, "second", get(other))
	proxy.Cut()
	client.CloseIdleConnections()
	assert.Equal(t, "second", get(client))
}

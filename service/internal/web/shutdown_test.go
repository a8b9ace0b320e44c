package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held is a handler whose requests stay until they are released, or the client goes away.
type held struct {
	entered, release chan struct{}
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.entered <- struct{}{}
	select {
	case <-h.release:
		io.WriteString(w, "up 1\n")
	case <-r.Context().Done():
	}
}

// Requests that run when Shutdown begins end with their answer; connections that come later
// are refused.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*http.Client{"http1": {Transport: &http.Transport{}}, "h2c": h2c(t)} {
		h := &held{make(chan struct{}), make(chan struct{})}
		s := newServer(t, setup{options: Options{Metrics: h}})
		address, served := s.start(t)
		type result struct {
			status int
			body   string
			err    error
		}
		answers := make(chan result, 1)
		go func() {
			got, err := client.Get("http://" + address + "/metrics")
			if err != nil {
				answers <- result{err: err}
				return
			}
			defer got.Body.Close()
			body, err := io.ReadAll(got.Body)
			answers <- result{got.StatusCode, string(body), err}
		}()
		<-h.entered
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		require.NoError(t, <-served, name) // it stops accepting at once
		_, err := net.Dial("tcp", address)
		require.Error(t, err, name)
		select {
		case <-ended:
			assert.Fail(t, "Shutdown did not wait for the request", name)
		default:
		}
		close(h.release)
		assert.Equal(t, result{200, "up 1\n", nil}, <-answers, name)
		assert.NoError(t, <-ended, name)
		client.CloseIdleConnections()
	}
}

// Requests that do not end in time are cut.
func TestShutdownEnds(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*http.Client{"http1": {Transport: &http.Transport{}}, "h2c": h2c(t)} {
		h := &held{make(chan struct{}), make(chan struct{})}
		s := newServer(t, setup{options: Options{Metrics: h}, sample: 1})
		address, served := s.start(t)
		cut := make(chan error, 1)
		go func() {
			got, err := client.Get("http://" + address + "/metrics")
			if err == nil {
				_, err = io.ReadAll(got.Body)
				got.Body.Close()
			}
			cut <- err
		}()
		<-h.entered
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		assert.ErrorIs(t, s.Shutdown(ctx), context.Canceled, name)
		assert.NoError(t, <-served, name)
		assert.Error(t, <-cut, name)
		s.log.wait(t, `method="GET /metrics"`, 1) // the handler ends as well
		client.CloseIdleConnections()
	}
}

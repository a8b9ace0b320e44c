package stores_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

func TestDialer(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	var d stores.Dialer
	first, err := d.Dial(t.Context(), "tcp", server.Addr().String())
	require.NoError(t, err)
	second, err := d.Dial(t.Context(), "tcp", server.Addr().String())
	require.NoError(t, err)
	limited(t, first)
	require.NoError(t, first.Close())
	assert.ErrorIs(t, first.Close(), net.ErrClosed)

	// Close ends a wait for an answer.
	read := make(chan error)
	go func() {
		_, err := second.Read(make([]byte, 1))
		read <- err
	}()
	require.NoError(t, d.Close())
	assert.ErrorIs(t, <-read, net.ErrClosed)
	require.NoError(t, d.Close(), "again")
	_, err = d.Dial(t.Context(), "tcp", server.Addr().String())
	assert.ErrorIs(t, err, net.ErrClosed)
	_, err = d.Dial(context.Background(), "tcp", "127.0.0.1:1")
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

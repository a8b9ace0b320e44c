package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/sqlstore"
	"github.com/tickflake/tickflake/stores/storetest"
)

// silent is a connector to a server that never greets. As drivers do, it closes the
// connection when its context ends.
type silent struct {
	dial  func(context.Context) (net.Conn, error)
	ended chan error // the context's, or nil if it had not ended
}

func (s silent) Driver() driver.Driver { return nil }
func (s silent) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err = conn.Read(make([]byte, 1))
	s.ended <- ctx.Err()
	return nil, err
}

// A connection without a greeting is kept when its caller gives up, since the server counts
// it, and closed with the Store.
func TestOpen(t *testing.T) {
	server, dialer := storetest.Serve(t, nil), new(dial.Dialer)
	ended := make(chan error, 1)
	dial := func(ctx context.Context) (net.Conn, error) { return dialer.Dial(ctx, "tcp", server) }
	s, err := sqlstore.Open(&engine.URL{Namespace: "a", URL: &url.URL{Host: "h:1"}}, sqlstore.PostgreSQL(), silent{dial, ended}, dialer, time.Minute)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Read(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "postgres at h:1 table tickflake_cells: read k")
	require.NoError(t, s.Close())
	select {
	case err := <-ended:
		assert.NoError(t, err, "the end of the caller's context reached the driver")
	case <-time.After(20 * time.Second):
		t.Fatal("Close has closed no connection")
	}
}

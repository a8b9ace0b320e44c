package dial_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestDialer(t *testing.T) {
	server := storetest.Serve(t, nil)
	var d dial.Dialer
	first, err := d.Dial(t.Context(), "tcp", server)
	require.NoError(t, err)
	second, err := d.Dial(t.Context(), "tcp", server)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	assert.ErrorIs(t, first.Close(), net.ErrClosed)

	// Close ends a wait for an answer, and for a connection.
	ended, asked, before := make(chan error, 1), make(chan struct{}), net.DefaultResolver
	tell := sync.OnceFunc(func() { close(asked) })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { tell(); <-ctx.Done(); return nil, ctx.Err() }}
	defer func() { net.DefaultResolver = before }()
	go func() { _, err := d.Dial(t.Context(), "tcp", "server.example:1"); ended <- err }()
	<-asked
	read := make(chan error)
	go func() {
		_, err := second.Read(make([]byte, 1))
		read <- err
	}()
	require.NoError(t, d.Close())
	assert.ErrorIs(t, <-read, net.ErrClosed)
	assert.ErrorIs(t, <-ended, context.Canceled)
	require.NoError(t, d.Close(), "again")
	_, err = d.Dial(t.Context(), "tcp", server)
	assert.ErrorIs(t, err, net.ErrClosed)
	var refused dial.Dialer
	_, err = refused.Dial(context.Background(), "tcp", "127.0.0.1:1")
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// With Most, a connection counts until the other end has closed it, and Dial waits for that.
func TestDialerMost(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	d := dial.Dialer{Most: 2}
	defer d.Close()
	dial := func(ctx context.Context) (net.Conn, error) { return d.Dial(ctx, "tcp", server.Addr().String()) }
	_, err = d.Dial(t.Context(), "tcp", "127.0.0.1:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "which does not count")
	var theirs []net.Conn
	for range 2 {
		ours, err := dial(t.Context())
		require.NoError(t, err)
		accepted, err := server.Accept()
		require.NoError(t, err)
		theirs = append(theirs, accepted)
		defer accepted.Close()
		read := make(chan error)
		go func() {
			for range 3 {
				_, err := ours.Read(make([]byte, 1))
				read <- err
			}
		}()
		_, err = accepted.Write([]byte{1})
		require.NoError(t, err)
		require.NoError(t, <-read)
		runtime.Gosched() // so that the next Read has most likely begun
		require.NoError(t, ours.Close())
		require.Error(t, <-read, "a Read ends with Close")
		require.ErrorIs(t, <-read, net.ErrClosed)
		_, err = accepted.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF, "the other end is told")
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = dial(short)
	require.ErrorContains(t, err, "2 connections are open")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = d.Dial(t.Context(), "tcp", storetest.Serve(t, nil))
	require.NoError(t, err, "another server of a cluster has its own bound")
	time.AfterFunc(50*time.Millisecond, func() { _ = theirs[0].Close() })
	_, err = dial(t.Context())
	require.NoError(t, err, "it waits")
}

// Rest closes what nobody has used for MaxSilence. The server does not count it any more.
func TestDialerRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer server.Close()
		d := dial.Dialer{Most: 1}
		defer d.Close()
		ours, err := d.Dial(t.Context(), "tcp", server.Addr().String())
		require.NoError(t, err)
		theirs, err := server.Accept()
		require.NoError(t, err)
		defer theirs.Close()
		for _, use := range []func([]byte) (int, error){ours.Write, ours.Read, ours.Write} {
			_, err := theirs.Write([]byte{1})
			require.NoError(t, err)
			time.Sleep(dial.MaxSilence - 1)
			d.Rest()
			_, err = use([]byte{1})
			require.NoError(t, err)
		}
		time.Sleep(dial.MaxSilence)
		d.Rest()
		_, err = ours.Write([]byte{1})
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = d.Dial(t.Context(), "tcp", server.Addr().String())
		require.NoError(t, err)
	})
}

// With TLS, the certificate is that of the address. With One, the next Dial closes a connection
// that the driver has left open.
func TestDialerTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	address := server.Listener.Addr().String()
	config := new(tls.Config)
	d := dial.Dialer{One: true, TLS: func() (*tls.Config, error) { return config, nil }}
	defer d.Close()
	_, err := d.Dial(t.Context(), "tcp", address)
	require.ErrorAs(t, err, new(*tls.CertificateVerificationError))
	failed := errors.New("failed")
	require.EqualError(t, d.Because(failed), "failed: "+err.Error())
	require.NoError(t, d.Because(nil))
	config.RootCAs = x509.NewCertPool()
	config.RootCAs.AddCert(server.Certificate())
	first, err := d.Dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	require.Equal(t, failed, d.Because(failed))
	_, err = d.Dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	_, err = first.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

// A store that could not be opened is closed, and the error names the servers.
func TestOpeningFails(t *testing.T) {
	var done, dialing error
	open := dial.Register(dial.Form{Name: "pack", Plain: "pack:1", Secure: "packs:2"}, func(ctx context.Context, u *dial.Opening[string]) error {
		u.Store.Done = func() error {
			_, dialing = u.Dialer.Dial(ctx, "tcp", "127.0.0.1:1") // the driver may still need it
			done = errors.New("done")
			return nil
		}
		return errors.New("no server")
	})
	_, err := open(t.Context(), "pack://h,h:3")
	require.EqualError(t, err, "pack at h:1,h:3: open: no server; check that its servers are reachable and the credentials are right")
	require.Error(t, done)
	require.ErrorIs(t, dialing, syscall.ECONNREFUSED)
}

// A server that has taken over the address of a silent one is reached before the default
// grants end.
func TestMaxSilence(t *testing.T) {
	assert.Less(t, dial.MaxSilence, lease.DefaultWindow*2/3)
}

package dial_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
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

// authority returns a certificate that signs itself, for names of a server and for a client, and its texts in PEM.
func authority(t *testing.T, names ...string) (pair tls.Certificate, cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, DNSNames: names}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	pair, err = tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return pair, cert, key
}

// Files that a URL names are read at each handshake, by the Dialer and for a driver that keeps its configuration. The name of
// the server is checked all the same, and that is an address in many URLs.
func TestRenewed(t *testing.T) {
	var now tls.Certificate // of the server and of its clients
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		clients := x509.NewCertPool()
		clients.AddCert(now.Leaf)
		return &tls.Config{Certificates: []tls.Certificate{now}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}, nil
	}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	address := server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)

	file := func(name string) string { return filepath.Join(t.TempDir(), name) }
	options := map[string]string{"cacert": file("ca"), "cert": file("cert"), "key": file("key")}
	renew := func(names ...string) {
		pair, cert, key := authority(t, names...)
		for option, text := range map[string][]byte{"cacert": cert, "cert": cert, "key": key} {
			require.NoError(t, os.WriteFile(options[option], text, 0o600))
		}
		now = pair
	}
	renew("127.0.0.1", "localhost")
	secure, err := dial.TLS(&engine.URL{Secure: true, Options: options})
	require.NoError(t, err)
	dialer := &dial.Dialer{TLS: secure}
	defer dialer.Close()
	kept, err := dial.NewTransport(2, 1, secure)
	require.NoError(t, err)
	defer kept.Close()
	ways := map[string]func(host string) error{
		"Dial": func(host string) error {
			conn, err := dialer.Dial(t.Context(), "tcp", net.JoinHostPort(host, port))
			if err == nil {
				_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n"))
			}
			if err == nil {
				_, err = conn.Read(make([]byte, 1)) // since the server tells then what it thinks of our certificate
			}
			return err
		},
		"Transport": func(host string) error {
			kept.CloseIdleConnections()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+net.JoinHostPort(host, port), nil)
			require.NoError(t, err)
			answer, err := kept.RoundTrip(request)
			if err == nil {
				err = answer.Body.Close()
			}
			return err
		},
	}
	for name, connect := range ways {
		for range 2 {
			renew("127.0.0.1", "localhost")
			require.NoError(t, connect("127.0.0.1"), name)
			require.NoError(t, connect("localhost"), name)
		}
		renew("10.0.0.1", "other.example")
		require.ErrorAs(t, connect("127.0.0.1"), new(x509.HostnameError), name)
		require.ErrorAs(t, connect("localhost"), new(x509.HostnameError), name)
		renew("localhost")
		require.ErrorAs(t, connect("127.0.0.1"), new(x509.HostnameError), name)
		stranger, _, _ := authority(t, "127.0.0.1")
		now = stranger
		require.ErrorAs(t, connect("127.0.0.1"), new(x509.UnknownAuthorityError), name)
		renew("127.0.0.1")
		require.NoError(t, os.WriteFile(options["cacert"], bytes.Repeat([]byte("-"), 9), 0o600))
		err := engine.Failed(context.Background(), "pack", "read", "k", "", connect("127.0.0.1"))
		require.ErrorContains(t, err, "option cacert: no certificate", name)
		assert.Equal(t, stores.Transient, stores.KindOf(err), "%s: %v", name, err)
	}
	require.NoError(t, os.Remove(options["key"]))
	_, err = dial.TLS(&engine.URL{Secure: true, Options: options})
	require.ErrorAs(t, err, new(*stores.URLError))
}

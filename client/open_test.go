package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
)

const secret = "a-secret-of-20-bytes"

func TestOptions(t *testing.T) {
	t.Parallel()
	local := []string{"127.0.0.1:9380"}
	for name, tt := range map[string]struct {
		servers []string
		options []Option
		want    string
	}{
		"no server":       {nil, nil, "none given"},
		"no port":         {[]string{"ids.example.com"}, nil, "HOST:PORT"},
		"no host":         {[]string{":9380"}, nil, "HOST:PORT"},
		"a URL":           {[]string{"http://ids.example.com:9380"}, nil, "HOST:PORT"},
		"no path":         {[]string{"unix:"}, nil, "unix:PATH"},
		"the same twice":  {[]string{"a:1", "a:1"}, nil, "a:1 is given twice"},
		"timeout":         {local, []Option{WithTimeout(0)}, "WithTimeout: 0s"},
		"a line in token": {local, []Option{WithToken(secret + "\n")}, "WithToken: the token has characters"},
		"plaintext token": {[]string{"127.0.0.1:9380", "ids.example.com:9380"}, []Option{WithToken(secret)}, "ids.example.com:9380 is not on this machine"},
		"a foreign IP":    {[]string{"10.0.0.1:9380"}, []Option{WithToken(secret)}, "10.0.0.1:9380 is not on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open(t.Context(), tt.servers, tt.options...)
			assert.ErrorIs(t, err, ErrOption)
			assert.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), secret)
		})
	}
	for _, accepted := range []struct {
		server  string
		options []Option
	}{
		{"localhost:9380", []Option{WithToken(secret)}},
		{"127.9.9.9:9380", []Option{WithToken(secret)}},
		{"[::1]:9380", []Option{WithToken(secret)}},
		{"unix:/run/ids", []Option{WithToken(secret)}},
		{"ids.example.com:9380", []Option{WithToken(secret), WithPlaintextToken()}},
		{"ids.example.com:9380", []Option{WithToken(secret), WithTLS(nil)}},
		{"ids.example.com:9380", nil},
	} {
		_, err := configure([]string{accepted.server}, accepted.options)
		assert.NoError(t, err, accepted.server)
	}
}

// TestOpen guards which servers a client can be opened with, and what it tells them.
func TestOpen(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s []*fake) {
		up, gone, hangs := s[0], s[1], s[2]
		gone.server.Stop()
		hangs.has(fault{hang: true, only: "Describe"})
		next(t, open(t, s)) // one server is enough
		_, err := tryOpen(t.Context(), s[1:])
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, gone.address)
		assert.ErrorContains(t, err, hangs.address)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = tryOpen(ctx, []*fake{hangs})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))

		token := []Option{WithToken(secret), WithPlaintextToken()}
		up.fails(status.Error(codes.Unauthenticated, "unknown token"))
		_, err = tryOpen(t.Context(), s[:2], token...)
		assert.ErrorIs(t, err, ErrDenied)
		assert.NotContains(t, err.Error(), secret)
		up.fails(nil)
		up.tokens = nil
		c := open(t, s[:1], token...)
		next(t, c)
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		bearer := "Bearer " + secret
		assert.Equal(t, []string{bearer, bearer, bearer}, up.tokens, "of Describe, Take and Number")

		up.maxBatch = 0
		_, err = tryOpen(t.Context(), s[:1])
		assert.ErrorContains(t, err, "batches of 0 IDs")
	})
}

// TestLayouts guards that a server of another layout is refused when the client is opened, and
// when it takes the address of a server later.
func TestLayouts(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s []*fake) {
		other := layout()
		other.Epoch = other.Epoch.AddDate(-1, 0, 0) // its IDs are larger
		s[2].layout = other
		_, err := tryOpen(t.Context(), s)
		assert.ErrorIs(t, err, ErrLayout)
		for _, text := range []string{other.String(), s[2].address, s[0].layout.String()} {
			assert.ErrorContains(t, err, text)
		}
		c := open(t, s[:2])
		assert.Equal(t, s[0].layout.String(), c.Layout().String())
		next(t, c)
		s[0].server.Stop()
		s[0].layout = other
		s[0].listen()
		for range 1000 {
			id, _ := next(t, c)
			require.Equal(t, int64(2), node(t, id))
			c.mu.Lock()
			c.routes[forIDs].preferred = 0
			c.mu.Unlock()
			time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		}
		synctest.Wait() // for the requests that run
		assert.ErrorIs(t, c.routes[forIDs].health[0].err, ErrLayout)
	})
}

// TestTLS guards that the client checks the certificate of a server, and shows its own.
func TestTLS(t *testing.T) {
	t.Parallel()
	pki := httptest.NewTLSServer(nil)
	t.Cleanup(pki.Close)
	pool := x509.NewCertPool()
	pool.AddCert(pki.Certificate())
	own := pki.TLS.Certificates
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: own, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13})))
	s := &fake{layout: layout(), maxBatch: 10, useWithin: time.Second, calls: map[string]int{}}
	tickflakev1.RegisterTickflakeServiceServer(server, s)
	go server.Serve(l)
	t.Cleanup(server.Stop)

	address, quiet := []string{l.Addr().String()}, WithLogger(slog.New(slog.DiscardHandler))
	c, err := Open(t.Context(), address, WithToken(secret), WithTLS(&tls.Config{RootCAs: pool, Certificates: own, MinVersion: tls.VersionTLS13}))
	require.NoError(t, err)
	_, err = c.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	s.set(func() { assert.Contains(t, s.tokens, "Bearer "+secret) })
	for name, options := range map[string][]Option{
		"without a certificate":      {WithTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13})},
		"the authority is not known": {WithTLS(nil)},
		"in plaintext":               nil,
	} {
		_, err = Open(t.Context(), address, append(options, quiet)...)
		assert.ErrorIs(t, err, ErrUnavailable, name)
	}
}

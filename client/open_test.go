package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
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

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
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
		"freshness":       {local, []Option{WithFreshness(0)}, "WithFreshness: 0s"},
		"least":           {local, []Option{WithPrefetch(0, 5)}, "WithPrefetch: 0 to 5"},
		"most":            {local, []Option{WithPrefetch(6, 5)}, "WithPrefetch: 6 to 5"},
		"hedging":         {local, []Option{WithHedging(-1)}, "WithHedging: -1ns"},
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

func TestOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		up, away, hangs := n.start(t, 1), n.start(t, 2), n.start(t, 3)
		away.stop()
		hangs.set(func() { hangs.before = func(ctx context.Context, _ string) error { return hang(ctx, "Take") } })

		c := open(t, []*fake{up, away, hangs}) // one server is enough
		_, err := c.Next(t.Context())
		require.NoError(t, err)

		_, err = tryOpen(t.Context(), []*fake{away, hangs})
		assert.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, away.address)
		assert.ErrorContains(t, err, hangs.address)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = tryOpen(ctx, []*fake{hangs})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))

		up.fail(status.Error(codes.Unauthenticated, "unknown token"))
		_, err = tryOpen(t.Context(), []*fake{up, away}, WithToken(secret), WithPlaintextToken())
		assert.ErrorIs(t, err, ErrDenied)
		assert.NotContains(t, err.Error(), secret)
		up.fail(nil)

		up.set(func() { up.tokens = nil })
		c = open(t, []*fake{up}, WithToken(secret), WithPlaintextToken())
		_, err = c.Next(t.Context())
		require.NoError(t, err)
		_, err = c.Number(t.Context(), "orders")
		require.NoError(t, err)
		up.set(func() {
			assert.Len(t, up.tokens, 4) // two of Describe
			assert.Equal(t, "Bearer "+secret, up.tokens[3])
		})

		up.set(func() { up.maxBatch = 0 })
		_, err = tryOpen(t.Context(), []*fake{up})
		assert.ErrorContains(t, err, "batches of 0 IDs")
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
	s := &fake{layout: layout(), maxBatch: 10, useWithin: time.Second, calls: map[string]int{}, numbers: map[string]int64{}}
	tickflakev1.RegisterTickflakeServer(server, s)
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

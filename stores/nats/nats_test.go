package nats

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.creds")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	storetest.TestURLs(t, open, "nats://u:SECRET@h", map[string]string{
		"nats://u:SECRET@h/path":           "a path after the host",
		"nats://u:SECRET@h?x=SECRET":       "there are namespace, domain, replicas, creds, cacert, cert, key",
		"nats://u:SECRET@h?domain=a.b":     "option domain",
		"nats://u:SECRET@h?replicas=0":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?replicas=6":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?replicas=x":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?creds=/none":    "option creds: nats: open /none: ",
		"nats://u:SECRET@h?creds=" + empty: "option creds: unable to extract key pair",
	})
}

// An attempt at a host of which no address is found ends, by itself.
func TestDialEnds(t *testing.T) {
	before := net.DefaultResolver
	defer func() { net.DefaultResolver = before }()
	silent := false
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if silent {
			<-ctx.Done()
		}
		return nil, net.ErrClosed
	}}
	_, _ = net.DefaultResolver.LookupHost(t.Context(), "server.example") // package net makes its channels here, outside the bubble
	silent = true
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := dialer{new(dial.Dialer)}.Dial("tcp", "server.example:1")
		assert.Error(t, err)
		assert.Equal(t, dialTime, time.Since(begin))
	})
}

// Authorities that are renewed count at the next handshake.
func TestRenewed(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	secured := make(chan struct{}, 100) // handshakes that the client has accepted
	addr := storetest.Serve(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, `INFO {"server_id":"x","version":"2.15.0","proto":1,"headers":true,"max_payload":1048576,"tls_required":true}`+"\r\n")
		secure := tls.Server(conn, &tls.Config{Certificates: web.TLS.Certificates}) //nolint:gosec // a test
		if n, _ := secure.Read(make([]byte, 1)); n > 0 {
			secured <- struct{}{}
		}
		_ = secure.Close()
	})
	file := filepath.Join(t.TempDir(), "ca.pem")
	good := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, good, 0o600))
	u := &engine.URL{Secure: true, Options: map[string]string{"cacert": file}}
	secure, err := dial.TLS(u)
	require.NoError(t, err)
	options, err := connectOptions(u, secure)
	require.NoError(t, err)
	for n, text := range [][]byte{[]byte("-"), good} {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		_, err := natsgo.Connect("tls://"+addr, options...)
		assert.Error(t, err)
		assert.Len(t, secured, n)
	}
}

// What a server says that starts, stops, fails over or refuses has its kind, and what to do. A refusal counts more than that there
// is no connection.
func TestKinds(t *testing.T) {
	for _, tt := range []struct {
		err    error
		kind   stores.Kind
		advice string
	}{
		{errAway, stores.Transient, "no connection"},
		{errLost, stores.Transient, "was lost"},
		{natsgo.ErrNoServers, stores.Transient, "no connection"},
		{natsgo.ErrStaleConnection, stores.Transient, "no connection"},
		{natsgo.ErrMaxConnectionsExceeded, stores.Transient, "raise max_connections"},
		{jetstream.ErrNoStreamResponse, stores.Transient, "no leader"},
		{&jetstream.APIError{ErrorCode: 10008}, stores.Transient, "no leader"},
		{&jetstream.APIError{ErrorCode: 10005}, stores.Transient, "name fewer copies"},
		{&jetstream.APIError{ErrorCode: 10074}, stores.Permanent, "replicas=1"},
		{&jetstream.APIError{ErrorCode: 10047}, stores.Permanent, "raise max_file_store"},
		{natsgo.ErrNoResponders, stores.Transient, "the option domain"},
		{jetstream.ErrJetStreamNotEnabled, stores.Permanent, "switch it on"},
		{fmt.Errorf("%w: %w", natsgo.ErrConnectionClosed, natsgo.ErrAuthorization), stores.Permanent, "fix the URL"},
		{new(texts).home("leaf"), stores.Permanent, "domain="},
	} {
		err := refused(tt.err)
		assert.Equal(t, tt.kind, stores.KindOf(err), "%v", err)
		assert.ErrorContains(t, err, tt.advice)
	}
}

package nats

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

// Other bad URLs are tried in package stores.
func TestBadURL(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.creds")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	storetest.TestURLs(t, open, "nats://u:SECRET@h", map[string]string{
		"nats://u:SECRET@h/path":           "a path after the host",
		"nats://u:SECRET@h?x=SECRET":       "there are namespace, domain, replicas, creds, nkey, cacert, cert, key",
		"nats://u:SECRET@h?domain=a.b":     "option domain",
		"nats://u:SECRET@h?replicas=0":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?replicas=6":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?replicas=x":     "option replicas is not 1 to 5",
		"nats://u:SECRET@h?nkey=/none":     "option nkey",
		"nats://u:SECRET@h?creds=/none":    "option creds: nats: open /none: ",
		"nats://u:SECRET@h?creds=" + empty: "option creds: unable to extract key pair",
	})
}

// Open gives up when its context ends, however many servers there are to wait for, and does not take its own end of the
// attempt for the cause.
func TestOpenEnds(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test has ended
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = open(ctx, "nats://"+strings.Repeat(silent.Addr().String()+",", 3)+silent.Addr().String())
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) || time.Since(begin) > 5*time.Second {
		t.Errorf("Open returned after %v: %v", time.Since(begin), err)
	}
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
		_, err := (&dialer{Dialer: new(dial.Dialer)}).Dial("tcp", "server.example:1")
		if took := time.Since(begin); err == nil || took != dialTime {
			t.Errorf("%v after %v, want an error after %v", err, took, dialTime)
		}
	})
}

// A List of one first part asks for no others.
func TestFilter(t *testing.T) {
	for _, c := range [][3]string{
		{"node/", "node0", "node.>"}, {"node/5", "node/7", "node.>"}, {"a.b/", "a.b0", "a=b.>"}, {"node/", "node1", ">"},
		{"", "\x7f", ">"}, {"node", "node0", ">"}, {"/", "0", ">"}, {"A/", "A0", ">"},
	} {
		if got := filter(c[0], c[1]); got != c[2] {
			t.Errorf("filter(%q, %q) is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// Authorities that are renewed count at the next handshake.
func TestRenewed(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()              //nolint:errcheck // the test has ended
	secured := make(chan struct{}, 100) // handshakes that the client has accepted
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			_, _ = io.WriteString(conn, `INFO {"server_id":"x","version":"2.15.0","proto":1,"headers":true,"max_payload":1048576,"tls_required":true}`+"\r\n")
			secure := tls.Server(conn, &tls.Config{Certificates: web.TLS.Certificates}) //nolint:gosec // a test
			if n, _ := secure.Read(make([]byte, 1)); n > 0 {
				secured <- struct{}{}
			}
			_ = secure.Close()
		}
	}()
	file := filepath.Join(t.TempDir(), "ca.pem")
	good := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := engine.ParseURL("tls://"+listener.Addr().String()+"?cacert="+file, "nats:1", "tls:1")
	if err != nil {
		t.Fatal(err)
	}
	secure, err := dial.TLS(u)
	if err != nil {
		t.Fatal(err)
	}
	options, err := connectOptions(u, secure)
	if err != nil {
		t.Fatal(err)
	}
	for _, renewed := range []bool{false, true} {
		text := []byte("-")
		if renewed {
			text = good
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := natsgo.Connect("tls://"+listener.Addr().String(), options...); err == nil || (len(secured) > 0) != renewed {
			t.Errorf("renewed: %v; %d handshakes, %v", renewed, len(secured), err)
		}
	}
}

// A seed that is renewed is another key at the next connect.
func TestKeyIsRenewed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed")
	var options natsgo.Options
	for _, c := range [][2]string{
		{"SUAETYSUNJ4AXE3KCJADFHKEU4HAS3EJKXMAZJPBYMJOPI7WJ7HLWNFQ2A", "UCDANQFBJ7Y7PMDI3P5WABIPR55YFNY44JSMGEEO2GBELG7VFITGDK55"},
		{"SUAPD7QUOS4VM5RPVYT5XKL2T4BW7PSN5OV6Y3ESFBUWDVC7SL5OSHWGWM", "UBWAXNJASU6FBMWXGJUUOCGRDE22M5IYBMBKNFGOALTUDR7HJSRY4OTX"},
		{"half writ", "UBWAXNJASU6FBMWXGJUUOCGRDE22M5IYBMBKNFGOALTUDR7HJSRY4OTX"},
	} {
		if err := os.WriteFile(file, []byte(c[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if renewKey(&options, file); options.Nkey != c[1] {
			t.Errorf("the key of %q is %s", c[0], options.Nkey)
		}
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
		if err := refused(tt.err); stores.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.advice) {
			t.Errorf("%v is %v, want %v with %q", err, stores.KindOf(err), tt.kind, tt.advice)
		}
	}
}

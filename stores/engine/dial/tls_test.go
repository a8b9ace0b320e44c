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
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
	"github.com/tickflake/tickflake/stores/engine/dial"
)

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

package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// URLs that no engine takes are tried in package engine.
func TestBadURLs(t *testing.T) {
	storetest.TestURLs(t, open, "postgres://u:SECRET@h/d", map[string]string{
		"postgres://u:SECRET@h:99999/d":                     "port",
		"postgres://u@h/d?password=SECRET&sslmode=nonsense": "does not take it",
		"postgres://u:SECRET@h/d?table=a%3Bdrop":            "the parameter table cannot be used: table \"a;drop\": want",
		"postgres://u:SECRET@h/d?target_session_attrs=any1": "target_session_attrs",
		// The secret is in an unusual place.
		"postgres://h/d?connect_timeout=SECRET":            "withheld, since it may show a password; it is about: connect_timeout",
		"postgres://h/d?sslrootcert=/SECRET/file":          "CA, TLS; a file that the URL names does not exist",
		"postgres://127.0.0.1/d?pwd=SECRET&sslmode=nope":   "sslmode",
		"postgres://SECRET@h/d?sslmode=nope":               "sslmode",
		"postgres://u@h/d:SECRET?sslmode=nope":             "sslmode",
		"postgres:///d?host=SECRET&sslmode=nope":           "sslmode",
		"postgres://h/d?port=1,2,3&host=SECRET,b":          "port",
		"postgres://h/d?SECRET&sslmode=nope":               "does not take it",
		"postgres://h/d?sslmode=%60%3A+SECRET":             "sslmode",
		"postgres://h/d?pwd=`: SECRET&sslmode=nope":        "sslmode",
		"postgres://h/d?target_session_attrs=SECRET":       "target_session_attrs",
		"postgres://h/d?default_query_exec_mode=SECRET":    "default_query_exec_mode",
		"postgres://h/d?service=SECRET&servicefile=SECRET": "service",
		"postgres://h/d?sslcert=SECRET&sslmode=require":    "sslcert, sslkey",
		"postgres://h/d?p%61ssword=SECRET&sslmode=nope":    "sslmode",
	})
}

// write writes a certificate that signs itself, for localhost, and its key.
func write(t *testing.T, name, cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// login takes a client's certificate and its password, and says that the server starts.
func login(conn net.Conn, cert, key string) (who string, err error) {
	defer func() { _ = conn.Close() }()
	buffer := make([]byte, 1000)
	if _, err = io.ReadFull(conn, buffer[:8]); err != nil { // it asks for TLS
		return "", err
	}
	_, _ = conn.Write([]byte("S"))
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return "", err
	}
	secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
	if _, err = secure.Read(buffer); err != nil {
		return "", err
	}
	_, _ = secure.Write([]byte("R\x00\x00\x00\x08\x00\x00\x00\x03")) // a password in clear text
	n, err := secure.Read(buffer)
	_, _ = secure.Write([]byte("E\x00\x00\x00\x19SFATAL\x00C57P03\x00Mwait\x00\x00"))
	return secure.ConnectionState().PeerCertificates[0].Subject.CommonName + " " + strings.Trim(string(buffer[5:n]), "\x00"), err
}

// The files that a URL names are read for each connection, and the host's name is compared with the new certificate.
func TestFilesAreReadAnew(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	renew := func(name string) {
		write(t, name, file("client.pem"), file("client.key"))
		write(t, "server", file("server.pem"), file("server.key"))
		require.NoError(t, os.WriteFile(file("passwords"), []byte("*:*:*:*:"+name+"'s"), 0o600))
	}
	renew("old")
	came := make(chan string, 100)
	_, port, err := net.SplitHostPort(storetest.Serve(t, func(conn net.Conn) {
		who, err := login(conn, file("server.pem"), file("server.key"))
		came <- fmt.Sprint(who, err)
	}))
	require.NoError(t, err)
	s, err := open(t.Context(), fmt.Sprintf("postgres://u@localhost:%s/d?sslmode=verify-full&sslrootcert=%s&sslcert=%s&sslkey=%s&passfile=%s",
		port, file("server.pem"), file("client.pem"), file("client.key"), file("passwords")))
	require.NoError(t, err)
	defer s.Close()
	for _, name := range []string{"old", "new"} {
		renew(name)
		_, err = s.Read(t.Context(), "node/7")
		assert.ErrorContains(t, err, "57P03")
		assert.Equal(t, stores.Transient, stores.KindOf(err), "%v", err)
		assert.Equal(t, name+" "+name+"'s<nil>", <-came)
	}
	require.NoError(t, os.Remove(file("client.key")))
	_, err = s.Read(t.Context(), "node/7")
	assert.ErrorIs(t, err, errFiles)
	assert.NotContains(t, err.Error(), dir)
}

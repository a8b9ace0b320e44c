//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
)

// certificate writes a certificate of its own authority for localhost, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600))
	return cert, key
}

// With a certificate the lines of the greeting use TLS, and with authorities of clients only
// clients with a certificate are served.
func TestServeTLS(t *testing.T) {
	servertest.Find(t, "curl", "curl")
	servertest.Find(t, "redis-cli", "redis-tools")
	cert, key := certificate(t)
	sh := func(line string) (string, error) {
		out, err := exec.Command("/bin/sh", "-c", line).Output()
		return string(out), err
	}
	for _, mutual := range []bool{false, true} {
		args := []string{"--tls-cert", cert, "--tls-key", key}
		curl, redis := " -s --cacert "+cert, " --cacert "+cert
		if mutual {
			args = append(args, "--tls-client-ca", cert)
		}
		s := startServe(t, args...)
		ask := func(curlOptions, redisOptions string) (ids, id string, err error) {
			ids, err = sh(strings.Replace(s.line(`curl.*v1/ids`), "curl", "curl"+curlOptions, 1))
			if err == nil {
				id, err = sh(strings.Replace(s.line(`redis-cli.* ID$`), " ID", redisOptions+" ID", 1))
			}
			return ids, id, err
		}
		if mutual {
			_, _, err := ask(curl, redis)
			assert.Error(t, err, "without a certificate of the client")
			files := " --cert " + cert + " --key " + key
			curl, redis = curl+files, redis+files
		}
		ids, id, err := ask(curl, redis)
		require.NoError(t, err)
		assert.Regexp(t, `^\{"ids":\["\d+","\d+","\d+"\]\}`, ids)
		assert.Regexp(t, `^\d+\n$`, id)
		assert.NotContains(t, s.line(`grpcurl`), "-plaintext")
		assert.Equal(t, 0, s.end(), s.stderr)
	}
}

func TestServeBadTLS(t *testing.T) {
	_, key := certificate(t)
	other, _ := certificate(t)
	for _, tt := range []struct{ cert, key, want string }{
		{"/nosuch/cert", key, "tickflake: --tls-cert: open /nosuch/cert: no such file or directory\n"},
		{other, key, "tickflake: --tls-cert: " + other + " with " + key + ": tls: private key does not match public key\n"},
		{key, key, "tickflake: --tls-cert: " + key + " with " + key + ": tls: *\n"},
	} {
		got := tickflake("serve", "--tls-cert", tt.cert, "--tls-key", tt.key)
		assert.Equal(t, 1, got.code)
		assert.True(t, matches(tt.want, got.err), got.err)
	}
	require.NoError(t, os.Chmod(key, 0o644))
	got := tickflake("serve", "--tls-cert", other, "--tls-key", key)
	assert.Contains(t, got.err, "every user can read "+key+", and it holds the key of the certificate")
}

// systemd's sockets are used instead of the addresses, and systemd is told when the server is
// ready and when it stops.
func TestServeSystemd(t *testing.T) {
	var files []*os.File
	var addresses []string
	for range protocols {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		f, err := l.(*net.TCPListener).File()
		require.NoError(t, err)
		files, addresses = append(files, f), append(addresses, l.Addr().String())
		require.NoError(t, l.Close())
		t.Cleanup(func() { f.Close() })
	}
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	require.NoError(t, err)
	defer told.Close()
	next := func() string {
		buffer := make([]byte, 100)
		require.NoError(t, told.SetReadDeadline(time.Now().Add(30*time.Second)))
		n, err := told.Read(buffer)
		require.NoError(t, err)
		return string(buffer[:n])
	}

	// systemd passes the sockets to one process, whose number they name.
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" serve --resp 127.0.0.1:1 --grpc off`, binary)
	cmd.ExtraFiles = files
	cmd.Env = append(os.Environ(), "LISTEN_FDS="+strconv.Itoa(len(files)), "LISTEN_FDNAMES="+strings.Join(protocols, ":"), "NOTIFY_SOCKET="+told.LocalAddr().String())
	s := startServing(t, cmd, t.TempDir())
	assert.Equal(t, "READY=1", next())
	assert.Contains(t, s.line(`grpcurl.*Take`), " "+addresses[2]+" ")
	servertest.Find(t, "curl", "curl")
	assert.Contains(t, s.line(`curl.*v1/ids`), "http://"+addresses[1]+"/")
	assert.Contains(t, s.paste(`curl.*v1/ids`), `{"ids":[`)
	live, err := http.Get("http://" + addresses[3] + "/livez")
	require.NoError(t, err)
	require.NoError(t, live.Body.Close())
	assert.Equal(t, http.StatusOK, live.StatusCode)
	assert.Equal(t, 0, s.end(), s.stderr)
	assert.Equal(t, "STOPPING=1", next())

	cmd = exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" serve`, binary)
	cmd.ExtraFiles = files[:1]
	cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES=tickflake.socket")
	out, err := cmd.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), `tickflake: systemd passed a socket with the name "tickflake.socket": set FileDescriptorName of each socket unit to one of resp, http, grpc, probes`)
}

package service_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/service"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.certificate, a.key = a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(1000 * time.Hour)})
	return a
}

func (a *authority) sign(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a.serial++
	c.SerialNumber, c.NotBefore = big.NewInt(a.serial), time.Now().Add(-time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	c, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	return c, key
}

// issue returns a certificate and its key as PEM.
func (a *authority) issue(t *testing.T, name string, usage x509.ExtKeyUsage, valid time.Duration) (certificate, key []byte) {
	t.Helper()
	c, k := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, NotAfter: time.Now().Add(valid),
	})
	der, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	return pemOf(c), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// secret is a directory with tls.crt, tls.key and ca.crt that are swapped at once, as those of
// a Kubernetes secret are: each is a symbolic link through ..data.
type secret struct {
	t    *testing.T
	path string
	n    int
}

func newSecret(t *testing.T) *secret {
	t.Helper()
	s := &secret{t: t, path: t.TempDir()}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), s.file(name)))
	}
	return s
}

func (s *secret) file(name string) string { return filepath.Join(s.path, name) }

func (s *secret) put(certificate, key, ca []byte) {
	s.t.Helper()
	s.n++
	version := strings.Repeat("v", s.n)
	require.NoError(s.t, os.Mkdir(s.file(version), 0o700))
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": ca} {
		require.NoError(s.t, os.WriteFile(filepath.Join(s.path, version, name), content, 0o600))
	}
	require.NoError(s.t, os.Symlink(version, s.file("next")))
	require.NoError(s.t, os.Rename(s.file("next"), s.file("..data")))
}

func (s *secret) load(ca bool, l *logs) (*tls.Config, error) {
	if !ca {
		return service.ReloadTLS(s.file("tls.crt"), s.file("tls.key"), "", l.logger())
	}
	return service.ReloadTLS(s.file("tls.crt"), s.file("tls.key"), s.file("ca.crt"), l.logger())
}

func TestReloadTLS(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, l, s := newAuthority(t), &logs{}, newSecret(t)
		name := func(c *tls.Config) string {
			certificate, err := c.GetCertificate(nil)
			require.NoError(t, err)
			return certificate.Leaf.Subject.CommonName
		}
		first, firstKey := a.issue(t, "first", x509.ExtKeyUsageServerAuth, time.Hour)
		second, secondKey := a.issue(t, "second", x509.ExtKeyUsageServerAuth, 24*time.Hour)
		s.put(first, firstKey, nil)
		c, err := s.load(false, l)
		require.NoError(t, err)
		assert.EqualValues(t, tls.VersionTLS12, c.MinVersion)

		s.put(second, secondKey, nil)
		assert.Equal(t, "first", name(c), "not read again within a second")
		time.Sleep(time.Second)
		assert.Equal(t, "second", name(c))
		assert.Contains(t, l.String(), "TLS files were read again")

		// Files that do not fit leave the old certificate, and are logged once.
		for _, bad := range [][2][]byte{{first, secondKey}, {first[:100], firstKey}, {nil, nil}} {
			s.put(bad[0], bad[1], nil)
			for range 5 {
				time.Sleep(time.Second)
				assert.Equal(t, "second", name(c))
			}
		}
		require.NoError(t, os.Remove(s.file("..data")))
		for range 5 {
			time.Sleep(time.Second)
			assert.Equal(t, "second", name(c))
		}
		assert.Equal(t, 4, strings.Count(l.String(), "new TLS files cannot be used"), l.String())

		s.put(first, firstKey, nil)
		time.Sleep(time.Second)
		assert.Equal(t, "first", name(c))
		time.Sleep(time.Hour)
		s.put(first, append(firstKey, '\n'), nil)
		assert.Equal(t, "first", name(c), "an expired one is better than none")
		assert.Contains(t, l.String(), "has expired at")
	})
}

func TestReloadTLSRefuses(t *testing.T) {
	t.Parallel()
	a, l := newAuthority(t), &logs{}
	good, key := a.issue(t, "good", x509.ExtKeyUsageServerAuth, time.Hour)
	old, oldKey := a.issue(t, "old", x509.ExtKeyUsageServerAuth, -time.Minute)
	for name, c := range map[string]struct {
		certificate, key, ca []byte
		want                 string
	}{
		"expired":    {old, oldKey, pemOf(a.certificate), "expired"},
		"other key":  {good, oldKey, pemOf(a.certificate), "tls.key"},
		"no CA":      {good, key, []byte("nothing"), "ca.crt: there is no certificate of an authority"},
		"large file": {append(good, make([]byte, 1<<20)...), key, nil, "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSecret(t)
			s.put(c.certificate, c.key, c.ca)
			_, err := s.load(true, l)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), string(c.key))
		})
	}
	_, err := newSecret(t).load(false, l)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// All protocols ask for TLS, and for a certificate of the client if there is an authority.
func TestTLS(t *testing.T) {
	t.Parallel()
	a, stranger, l, s := newAuthority(t), newAuthority(t), &logs{}, newSecret(t)
	certificate, key := a.issue(t, "server", x509.ExtKeyUsageServerAuth, 100*time.Hour)
	s.put(certificate, key, pemOf(a.certificate))
	trusted := a.certificate
	var err error
	r := start(t, func(c *service.Config) {
		c.TLS, err = s.load(true, l)
		require.NoError(t, err)
		c.ReadTimeout = time.Second
		c.Probes = listen(t)
	})
	code, _ := call(t, client(t, nil), http.MethodGet, "http://"+r.probes+"/livez", "")
	assert.Equal(t, http.StatusOK, code, "without TLS")
	with := func(a *authority, usage x509.ExtKeyUsage) *tls.Config {
		c := &tls.Config{RootCAs: x509.NewCertPool()}
		c.RootCAs.AddCert(trusted)
		if a != nil {
			pair, err := tls.X509KeyPair(a.issue(t, "client", usage, time.Hour))
			require.NoError(t, err)
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		return c
	}
	good := with(a, x509.ExtKeyUsageClientAuth)

	connection, err := tls.Dial("tcp", r.resp, good)
	require.NoError(t, err)
	redis := lineOf(t, connection)
	assert.Len(t, redis.ask(t, "ID"), 18)
	web := client(t, good.Clone())
	response, err := web.Post("https://"+r.http+"/v1/ids", "", nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.Equal(t, 2, response.ProtoMajor)
	_ = response.Body.Close()
	take := func(c *tls.Config) error {
		_, err := tickflakev1.NewTickflakeClient(dialGRPC(t, r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(c)))).Take(t.Context(), &tickflakev1.TakeRequest{Count: 1})
		return err
	}
	require.NoError(t, take(good))
	_, metrics := call(t, web, http.MethodGet, "https://"+r.http+"/metrics", "")
	assert.Regexp(t, `tickflake_service_certificate_remaining_seconds\S* 35\d{4}`, metrics, "just below 360,000 s")

	for name, bad := range map[string]*tls.Config{
		"none": with(nil, 0), "of a stranger": with(stranger, x509.ExtKeyUsageClientAuth), "of a server": with(a, x509.ExtKeyUsageServerAuth),
	} {
		if connection, err := tls.Dial("tcp", r.resp, bad); err == nil { // TLS 1.3 tells a client with its first read
			_, _ = io.WriteString(connection, "ID\r\n")
			_, err = connection.Read(make([]byte, 1))
			assert.Error(t, err, name)
			_ = connection.Close()
		}
		if response, err := client(t, bad.Clone()).Post("https://"+r.http+"/v1/ids", "", nil); err == nil {
			assert.Fail(t, name)
			_ = response.Body.Close()
		}
		assert.Error(t, take(bad), name)
	}
	// A client without TLS gets no ID, and one that is silent is disconnected.
	plain, silent := dial(t, r.resp), dial(t, r.resp)
	_, err = io.WriteString(plain, "ID\r\n")
	require.NoError(t, err)
	answer, _ := io.ReadAll(plain)
	assert.NotContains(t, string(answer), "$")
	_, err = silent.r.ReadByte()
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Error(t, err)
	assert.Len(t, redis.ask(t, "ID"), 18, "it is known by its certificate")
}

package servicetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a certificate of [Authority.Issue] is for.
const (
	ForServers = x509.ExtKeyUsageServerAuth
	ForClients = x509.ExtKeyUsageClientAuth
)

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns an authority whose certificate it has signed itself.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{}
	a.certificate, a.key = a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(1000 * time.Hour),
	})
	return a
}

func (a *Authority) sign(t testing.TB, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	c.NotBefore = time.Now().Add(-time.Hour)
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

// Issue returns a certificate of a host, which is 127.0.0.1 as well, and its key, as PEM.
func (a *Authority) Issue(t testing.TB, host string, usage x509.ExtKeyUsage, valid time.Duration) (certificate, key []byte) {
	t.Helper()
	c, k := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{usage}, NotAfter: time.Now().Add(valid),
	})
	der, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	return encode("CERTIFICATE", c.Raw), encode("PRIVATE KEY", der)
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.certificate.Raw) }

// Pool returns the authorities that a peer trusts: this one.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Files are the paths of a certificate, its key and the authorities of clients.
type Files struct{ Cert, Key, ClientCA string }

// NewFiles returns files that do not exist until the first Put.
func NewFiles(t testing.TB) Files {
	dir := t.TempDir()
	return Files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
}

// Put replaces the contents of all files.
func (f Files) Put(t testing.TB, certificate, key, ca []byte) {
	t.Helper()
	for path, content := range map[string][]byte{f.Cert: certificate, f.Key: key, f.ClientCA: ca} {
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
}

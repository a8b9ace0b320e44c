package service

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ReloadTLS returns a configuration of TLS 1.2 and later with the certificate and the key of
// two files of PEM. If clientCAFile is not empty, clients need a certificate for client
// authentication that an authority in this file has signed.
//
// The files are read again when one of them has changed: a connection looks for changes, at
// most once per second in all. Certificates that a symbolic link replaces are found too, as
// those of a Kubernetes secret. New files that cannot be used leave the old certificate in
// use, and are logged once; nil is slog.Default.
//
// The error says that a file cannot be read or used, or that the certificate has expired.
func ReloadTLS(certFile, keyFile, clientCAFile string, log *slog.Logger) (*tls.Config, error) {
	if log == nil {
		log = slog.Default()
	}
	r := &reloader{cert: certFile, key: keyFile, clientCA: clientCAFile, log: log, next: time.Now().Add(reloadEvery)}
	files, err := r.read()
	if err == nil {
		r.seen = files.sum()
		err = r.use(files)
	}
	if err != nil {
		return nil, fmt.Errorf("service: TLS: %w", err)
	}
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &r.get().certificate, nil },
	}
	if clientCAFile != "" {
		// The package tls verifies with authorities that do not change. VerifyConnection is
		// called for resumed sessions as well.
		c.ClientAuth = tls.RequireAnyClientCert
		c.VerifyConnection = func(s tls.ConnectionState) error { return r.get().verify(s) }
	}
	return c, nil
}

const (
	reloadEvery = time.Second
	maxPEM      = 1 << 20 // bytes of a file
)

// reloader keeps a certificate that changes.
type reloader struct {
	cert, key, clientCA string
	log                 *slog.Logger

	// current is never nil once ReloadTLS has returned. It is replaced as a whole, under
	// reading.
	current atomic.Pointer[material]

	reading sync.Mutex // held to look for changes; guards the fields below
	next    time.Time  // no look before
	seen    [sha256.Size]byte
}

// material is the content of the files. It does not change.
type material struct {
	certificate tls.Certificate
	clientCAs   *x509.CertPool // nil: clients need no certificate
}

// files are the contents of the files.
type files struct{ cert, key, clientCA []byte }

func (f files) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, content := range [][]byte{f.cert, f.key, f.clientCA} {
		fmt.Fprintf(h, "%d ", len(content))
		h.Write(content)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// get returns the material in use. One caller per second looks for changes; the others do not
// wait for it.
func (r *reloader) get() *material {
	if r.reading.TryLock() {
		if now := time.Now(); !now.Before(r.next) {
			r.next = now.Add(reloadEvery)
			r.reload()
		}
		r.reading.Unlock()
	}
	return r.current.Load()
}

// reload reads the files, and uses their content if it is new.
func (r *reloader) reload() {
	files, err := r.read()
	sum := files.sum()
	if err != nil {
		sum = sha256.Sum256([]byte(err.Error()))
	}
	if sum == r.seen {
		return
	}
	r.seen = sum
	if err == nil {
		err = r.use(files)
	}
	leaf := r.current.Load().certificate.Leaf
	if err != nil {
		r.log.Error("new TLS files cannot be used: the certificate that was read before stays in use", "error", err, "expires", leaf.NotAfter)
		return
	}
	r.log.Info("TLS files were read again", "certificate", r.cert, "expires", leaf.NotAfter)
}

func (r *reloader) read() (f files, err error) {
	for _, one := range []struct {
		path    string
		content *[]byte
	}{{r.cert, &f.cert}, {r.key, &f.key}, {r.clientCA, &f.clientCA}} {
		if one.path == "" && one.content == &f.clientCA {
			continue
		}
		if *one.content, err = readPEM(one.path); err != nil {
			return files{}, err
		}
	}
	return f, nil
}

func readPEM(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxPEM+1))
	if err == nil && len(content) > maxPEM {
		err = fmt.Errorf("%s has more than %d bytes: want a file of PEM", path, maxPEM)
	}
	return content, err
}

// use puts the contents of the files in use, if they are fit for it.
func (r *reloader) use(f files) error {
	certificate, err := tls.X509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("%s with %s: %w", r.cert, r.key, err)
	}
	if end := certificate.Leaf.NotAfter; time.Now().After(end) {
		return fmt.Errorf("%s: the certificate has expired at %s", r.cert, end.Format(time.RFC3339))
	}
	m := &material{certificate: certificate}
	if r.clientCA != "" {
		m.clientCAs = x509.NewCertPool()
		if !m.clientCAs.AppendCertsFromPEM(f.clientCA) {
			return fmt.Errorf("%s: there is no certificate of an authority, as PEM", r.clientCA)
		}
	}
	r.current.Store(m)
	return nil
}

// verify checks the certificate of a client.
func (m *material) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the client has no certificate")
	}
	options := x509.VerifyOptions{
		Roots: m.clientCAs, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(options)
	return err
}

// expiry returns when the certificate in use expires, if that is known.
func expiry(c *tls.Config) (time.Time, bool) {
	if c == nil {
		return time.Time{}, false
	}
	var one *tls.Certificate
	if c.GetCertificate != nil {
		one, _ = c.GetCertificate(&tls.ClientHelloInfo{SupportedVersions: []uint16{tls.VersionTLS13}})
	} else if len(c.Certificates) > 0 {
		one = &c.Certificates[0]
	}
	if one == nil || len(one.Certificate) == 0 {
		return time.Time{}, false
	}
	leaf := one.Leaf
	if leaf == nil {
		var err error
		if leaf, err = x509.ParseCertificate(one.Certificate[0]); err != nil {
			return time.Time{}, false
		}
	}
	return leaf.NotAfter, true
}

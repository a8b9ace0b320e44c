package service

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
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
	r := &reloader{paths: []string{certFile, keyFile}, log: log, next: time.Now().Add(reloadEvery)}
	if clientCAFile != "" {
		r.paths = append(r.paths, clientCAFile)
	}
	if err := r.reload(); err != nil {
		return nil, fmt.Errorf("service: TLS: %w", err)
	}
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &r.get().Certificates[0], nil },
	}
	if clientCAFile != "" {
		c.ClientAuth = r.get().ClientAuth
		// A session of earlier authorities is not resumed: each configuration has keys of its own.
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.get(), nil }
	}
	return c, nil
}

const reloadEvery = time.Second

// reloader keeps a configuration that changes.
type reloader struct {
	paths []string // of the certificate, its key, and perhaps the authorities of clients
	log   *slog.Logger

	// current is never nil once ReloadTLS has returned. It is replaced as a whole, under
	// reading.
	current atomic.Pointer[tls.Config]

	reading sync.Mutex // held to look for changes; guards the fields below
	next    time.Time  // no look before
	seen    string     // the files, or the error that they gave
}

// get returns the configuration in use. One caller per second looks for changes; the others do not
// wait for it.
func (r *reloader) get() *tls.Config {
	if r.reading.TryLock() {
		if now := time.Now(); !now.Before(r.next) {
			r.next = now.Add(reloadEvery)
			_ = r.reload() // it is in the log
		}
		r.reading.Unlock()
	}
	return r.current.Load()
}

// reload reads the files, and uses their content if it is new.
func (r *reloader) reload() error {
	var files [][]byte
	var seen string
	var err error
	for _, path := range r.paths {
		var content []byte
		if content, err = os.ReadFile(path); err == nil {
			content, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), content) // of an editor of Windows
		}
		if err != nil {
			seen = err.Error()
			break
		}
		files = append(files, content)
		seen += fmt.Sprintf("%x ", sha256.Sum256(content))
	}
	if seen == r.seen {
		return nil
	}
	r.seen = seen
	old := r.current.Load()
	if err == nil {
		err = r.use(files)
	}
	switch {
	case old == nil:
	case err != nil:
		r.log.Error("new TLS files cannot be used: the certificate that was read before stays in use", "error", err, "expires", old.Certificates[0].Leaf.NotAfter)
	default:
		r.log.Info("TLS files were read again", "certificate", r.paths[0], "expires", r.current.Load().Certificates[0].Leaf.NotAfter)
	}
	return err
}

// use puts the contents of the files in use, if they are fit for it.
func (r *reloader) use(files [][]byte) error {
	certificate, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return fmt.Errorf("%s with %s: %w", r.paths[0], r.paths[1], err)
	}
	if end := certificate.Leaf.NotAfter; time.Now().After(end) {
		return fmt.Errorf("%s: the certificate has expired at %s", r.paths[0], end.Format(time.RFC3339))
	}
	// The protocols of HTTP and gRPC. A client of RESP names none.
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
	if len(files) > 2 {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(files[2]) {
			return fmt.Errorf("%s: there is no certificate of an authority, as PEM", r.paths[2])
		}
	}
	r.current.Store(c)
	return nil
}

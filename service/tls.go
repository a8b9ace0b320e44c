package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// TLS returns a configuration of TLS 1.2 and later with the certificate and the key of
// two files of PEM. If clientCAFile is not empty, clients need a certificate for client
// authentication that an authority in this file has signed.
//
// [Files.Follow] reads the files again. New files that cannot be used leave the old certificate in
// use, and are logged once; nil is slog.Default. No handshake waits for a file.
//
// The error says that a file cannot be read or used, or that the certificate has expired.
func (f *Files) TLS(ctx context.Context, certFile, keyFile, clientCAFile string, log *slog.Logger) (*tls.Config, error) {
	if log == nil {
		log = slog.Default()
	}
	var current atomic.Pointer[tls.Config] // never nil once the first is in use; replaced as a whole
	var failed error
	f.Add(ctx, func(read func(string) ([]byte, error)) func() {
		next, err := readTLS(read, certFile, keyFile, clientCAFile)
		return func() {
			old := current.Load()
			switch {
			case err == nil:
				current.Store(next)
				if old != nil {
					log.Info("TLS files were read again", "certificate", certFile, "expires", next.Certificates[0].Leaf.NotAfter)
				}
			case old != nil:
				log.Error("new TLS files cannot be used: the certificate that was read before stays in use", "error", err, "expires", old.Certificates[0].Leaf.NotAfter)
			default:
				failed = fmt.Errorf("service: TLS: %w", err)
			}
		}
	})()
	if failed != nil {
		return nil, failed
	}
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &current.Load().Certificates[0], nil },
	}
	if clientCAFile != "" {
		c.ClientAuth = current.Load().ClientAuth
		// A session of earlier authorities is not resumed: each configuration has keys of its own.
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.Load(), nil }
	}
	return c, nil
}

// readTLS reads the files, and checks that they are fit for use.
func readTLS(read func(string) ([]byte, error), certFile, keyFile, clientCAFile string) (*tls.Config, error) {
	var texts [3][]byte
	for i, path := range []string{certFile, keyFile, clientCAFile} {
		var err error
		if path == "" {
			continue
		}
		if texts[i], err = read(path); err != nil {
			return nil, err
		}
	}
	certificate, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", certFile, keyFile, err)
	}
	if end := certificate.Leaf.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("%s: the certificate has expired at %s", certFile, end.Format(time.RFC3339))
	}
	// The protocols of HTTP and gRPC. A client of RESP names none.
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}
	if clientCAFile != "" {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(texts[2]) {
			return nil, fmt.Errorf("%s: there is no certificate of an authority, as PEM", clientCAFile)
		}
	}
	return c, nil
}

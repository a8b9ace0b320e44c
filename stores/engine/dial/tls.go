package dial

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine"
)

// Secure returns the configuration of the next handshake of TLS. It reads its files anew, since others renew them while the
// process runs. It is safe for use by several goroutines at once.
type Secure func() (*tls.Config, error)

// TLS returns the Secure that a URL asks for: the system's certificate authorities or those in the file cacert, in PEM, and
// the client's certificate in the files cert and key, if there is one. It is nil if the scheme is the one without TLS. The
// error is a [*stores.URLError] if a file cannot be used now. Later errors of the Secure are Transient: a file may be half
// renewed.
func TLS(u *engine.URL) (Secure, error) {
	if !u.Secure {
		return nil, nil
	}
	return Trust(u)
}

// Trust is TLS for a URL whose scheme does not tell.
func Trust(u *engine.URL) (Secure, error) {
	if _, problem, err := read(u.Options); problem != "" {
		return nil, u.Refuse(problem, err)
	}
	return func() (*tls.Config, error) {
		config, problem, err := read(u.Options)
		if problem != "" {
			return nil, fmt.Errorf("%w: %w", stores.Transient.New(problem), cmp.Or(err, errors.New("is it written now?")))
		}
		return config, nil
	}, nil
}

// read reads the files of options. problem is "" if they can be used.
func read(options map[string]string) (config *tls.Config, problem string, err error) {
	config = &tls.Config{MinVersion: tls.VersionTLS12}
	if file := options["cacert"]; file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, "option cacert", err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(bytes.TrimPrefix(pem, []byte("\ufeff"))) { // of an editor of Windows
			return nil, "option cacert: no certificate in " + file, nil
		}
	}
	if cert, key := options["cert"], options["key"]; cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, "options cert and key", err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, "", nil
}

// Certificate is the GetClientCertificate of a configuration that a driver keeps.
func (s Secure) Certificate(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	now, err := s()
	switch {
	case err != nil:
		return nil, err
	case now.GetClientCertificate != nil:
		return now.GetClientCertificate(asked)
	case len(now.Certificates) > 0:
		return &now.Certificates[0], nil
	}
	return new(tls.Certificate), nil
}

// Kept returns a configuration for a driver that keeps one: each handshake reads the files anew. host is that of the server
// where a handshake has no name, as with an IP address. The error is that of the Secure.
func (s Secure) Kept(host string) (*tls.Config, error) {
	now, err := s()
	if err != nil {
		return nil, err
	}
	config := now.Clone()
	config.GetClientCertificate = s.Certificate
	if config.RootCAs == nil || config.InsecureSkipVerify {
		return config, nil
	}
	config.InsecureSkipVerify = true // since VerifyConnection verifies by the authorities of now, and the name too
	config.VerifyConnection = func(is tls.ConnectionState) error {
		now, err := s()
		if err != nil {
			return err
		}
		options := x509.VerifyOptions{Roots: now.RootCAs, DNSName: cmp.Or(is.ServerName, host), Intermediates: x509.NewCertPool()}
		for _, c := range is.PeerCertificates[1:] {
			options.Intermediates.AddCert(c)
		}
		if _, err := is.PeerCertificates[0].Verify(options); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: is.PeerCertificates, Err: err}
		}
		return nil
	}
	return config, nil
}

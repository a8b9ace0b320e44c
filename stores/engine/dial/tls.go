package dial

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
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
func (s Secure) Certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	now, err := s()
	if err != nil || len(now.Certificates) == 0 {
		return new(tls.Certificate), err
	}
	return &now.Certificates[0], nil
}

// handshake makes the handshake of a connection to an address, whose host is the server's name unless the configuration has one.
// It closes the connection if it fails.
func (s Secure) handshake(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	config, err := s()
	if err != nil {
		_ = conn.Close() // err has the reason
		return nil, err
	}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host = address
		}
		config = config.Clone()
		config.ServerName = host
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // err has the reason
		return nil, err
	}
	return secure, nil
}

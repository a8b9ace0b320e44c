package dial

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/tickflake/tickflake/stores/engine"
)

// TLS returns the TLS configuration that a URL asks for: the system's
// certificate authorities or those in the file cacert, and the client's certificate
// in the files cert and key, if there is one. It is nil if the scheme is the one without
// TLS.
func TLS(u *engine.URL) (*tls.Config, error) {
	if !u.Secure {
		return nil, nil
	}
	config, err := Trust(u)
	if err != nil {
		return nil, err
	}
	cert, key := u.Options["cert"], u.Options["key"]
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, u.Refuse("options cert and key", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Trust returns a TLS configuration with the authorities in the file of the option cacert,
// in PEM, or the system's.
func Trust(u *engine.URL) (*tls.Config, error) {
	config, file := &tls.Config{MinVersion: tls.VersionTLS12}, u.Options["cacert"]
	if file == "" {
		return config, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, u.Refuse("option cacert", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(bytes.TrimPrefix(pem, []byte("\ufeff"))) { // of an editor of Windows
		return nil, u.Refuse("option cacert: no certificate in "+file, nil)
	}
	return config, nil
}

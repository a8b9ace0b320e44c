package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/systemd"
)

// tls returns the configuration of TLS, or nil without a certificate.
func (s *serving) tls(log *slog.Logger) (*tls.Config, error) {
	switch {
	case s.own.TLSCert == "" && s.own.TLSKey == "" && s.own.TLSClientCA == "":
		return nil, nil
	case s.own.TLSCert == "" || s.own.TLSKey == "":
		return nil, cli.Usage(errors.New("TLS needs --tls-cert and --tls-key"))
	}
	s.file.warnOfReaders(s.own.TLSKey, "it holds the key of the certificate")
	config, err := service.ReloadTLS(s.own.TLSCert, s.own.TLSKey, s.own.TLSClientCA, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", s.source("tls-cert"), strings.TrimPrefix(err.Error(), "service: TLS: "))
	}
	return config, nil
}

// notify tells systemd the state of the server, if systemd started it. A server that cannot
// tell it serves all the same.
func (s *serving) notify(log *slog.Logger, state string) {
	if err := systemd.Notify(state); err != nil {
		log.Warn("systemd is not told the state", "state", state, "error", err)
	}
}

// refused turns an error of service.New into one that names the setting.
func (s *serving) refused(err error) error {
	field, ok := errors.AsType[*service.FieldError](err)
	if !ok {
		return cli.Usage(err)
	}
	source := strings.ToLower(field.Field)
	switch known, _ := reflect.TypeFor[service.Config]().FieldByName(field.Field); {
	case field.Field == "Clients":
		source = fmt.Sprintf("%s: client %s", s.file.path, s.file.Clients[field.Index].Name)
	case field.Field == "Create":
		source = s.file.path + ": create"
	case known.Tag.Get("setting") != "":
		source = s.source(known.Tag.Get("setting"))
	default:
		source = s.source(source)
	}
	return cli.Usage(fmt.Errorf("%s: %w", source, field.Err))
}

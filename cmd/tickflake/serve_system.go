package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/stores"
)

// tls returns the configuration of TLS, or nil without a certificate.
func (s *serving) tls(ctx context.Context, log *slog.Logger) (*tls.Config, error) {
	switch {
	case s.own.TLSCert == "" && s.own.TLSKey == "" && s.own.TLSClientCA == "":
		return nil, nil
	case s.own.TLSCert == "" || s.own.TLSKey == "":
		return nil, cli.Usage(errors.New("TLS needs --tls-cert and --tls-key"))
	}
	s.file.warnOfReaders(s.own.TLSKey, "it holds the key of the certificate")
	config, err := s.files.TLS(ctx, s.own.TLSCert, s.own.TLSKey, s.own.TLSClientCA, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", s.source("tls-cert"), strings.TrimPrefix(err.Error(), "service: TLS: "))
	}
	return config, nil
}

// notify tells systemd the state of the server, if systemd started it. A server that cannot
// tell it serves all the same.
func (s *serving) notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd is not told the state", "state", state, "error", err)
	}
}

// ask asks the server that runs with these settings, at the address of its probes or of HTTP, as --check says.
func (s *serving) ask(ctx context.Context) error {
	address, scheme := s.own.Probes, "http"
	if address == off {
		address, scheme = s.own.HTTP, choose(s.own.TLSCert == "", "http", "https")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		return cli.Usage(errors.New("--check asks at --probes or --http: give one of them a port"))
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := s.place.within(ctx)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/"+choose(s.check == "live", "livez", "readyz"), nil)
	if err != nil {
		return err
	}
	// Whose certificate it is does not matter: a probe tells nothing. Where clients need one, that of the server may do.
	own := &tls.Config{InsecureSkipVerify: true}
	if s.own.TLSClientCA != "" && scheme == "https" {
		pair, err := tls.LoadX509KeyPair(s.own.TLSCert, s.own.TLSKey)
		if err != nil {
			return fmt.Errorf("%s: %w", s.source("tls-cert"), err)
		}
		own.Certificates = []tls.Certificate{pair}
	}
	answer, err := (&http.Transport{TLSClientConfig: own}).RoundTrip(r)
	if err != nil && own.Certificates != nil {
		err = fmt.Errorf("%w: if its clients need a certificate that the server's own is not fit for, give --probes", err)
	}
	if err != nil {
		return fmt.Errorf("the server at %s does not answer: %w", address, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	var problem struct{ Detail string }
	_ = json.NewDecoder(answer.Body).Decode(&problem) // it may be of another program
	return fmt.Errorf("the server at %s is not %s: %s", address, s.check, cmp.Or(problem.Detail, answer.Status))
}

// refused turns an error of service.New into one that names the setting.
func (s *serving) refused(err error) error {
	wrong, ok := errors.AsType[*stores.OptionError](err)
	if !ok {
		return cli.Usage(err)
	}
	field, client := strings.TrimPrefix(wrong.Option, "Config."), 0
	known, _ := reflect.TypeFor[seam.Serve]().FieldByName(field)
	source := s.source(cmp.Or(known.Tag.Get("setting"), strings.ToLower(field)))
	if _, err := fmt.Sscanf(field, "Clients[%d]", &client); err == nil {
		source = fmt.Sprintf("%s: client %s", s.file.path, s.file.Clients[client].Name)
	} else if field == "Create" {
		source = s.file.path + ": create"
	}
	problem := strings.NewReplacer("set AllowOpen", "set --open", "set AllowPlaintext", "set --plaintext").Replace(wrong.Err.Error())
	return cli.Usage(fmt.Errorf("%s: %s", source, problem))
}

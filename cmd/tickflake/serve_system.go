package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/systemd"
)

// tls returns the configuration of TLS, or nil without a certificate.
func (s *serving) tls(log *slog.Logger) (*tls.Config, error) {
	switch {
	case s.tlsCert == "" && s.tlsKey == "" && s.tlsClientCA == "":
		return nil, nil
	case s.tlsCert == "" || s.tlsKey == "":
		return nil, cli.Usage(errors.New("TLS needs --tls-cert and --tls-key"))
	}
	s.file.warnOfReaders(s.tlsKey, "it holds the key of the certificate")
	config, err := service.ReloadTLS(s.tlsCert, s.tlsKey, s.tlsClientCA, log)
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

// fieldOf is how an error of service.New names a field.
var fieldOf = regexp.MustCompile(`^service: Config\.(\w+)(?:\[(\d+)\])?: `)

// settingOf are the settings of fields that have another name.
var settingOf = map[string]string{"Timeout": "request-timeout", "Hosts": "host", "TLS": "tls-cert", "Create": "create"}

// refused turns an error of service.New into one that names the setting.
func (s *serving) refused(err error) error {
	field := fieldOf.FindStringSubmatch(err.Error())
	if field == nil {
		return cli.Usage(err)
	}
	text := inFlags.Replace(err.Error()[len(field[0]):])
	if field[1] == "Clients" && len(s.file.clients) > 0 {
		client := s.file.clients[0]
		if n, err := strconv.Atoi(field[2]); err == nil && n < len(s.file.clients) {
			client = s.file.clients[n]
		}
		return cli.Usage(fmt.Errorf("%s: client %s: %s", client.at, client.Name, text))
	}
	name := settingOf[field[1]]
	if name == "" {
		name = strings.ToLower(upper.ReplaceAllString(field[1], "$1-$2"))
	}
	return cli.Usage(fmt.Errorf("%s: %s", s.source(name), text))
}

// inFlags names the settings instead of fields.
var inFlags = strings.NewReplacer("set TLS", "give --tls-cert and --tls-key", "set Plaintext", "give --plaintext",
	"set Clients", "name clients in the file of --config", "in TLS", "by --tls-client-ca", "set Open", "give --open",
	"TokenHash", "token-hash", "NoIDs", "ids: false", "its Token ", "its token ", "its Rate", "its rate", "a Rate", "a rate", "its Burst", "its burst", "its Name", "its name", "Sequences", "sequences")

// upper is where a word of a field's name begins.
var upper = regexp.MustCompile(`([a-z])([A-Z])`)

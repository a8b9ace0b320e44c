package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
)

// tls returns the configuration of TLS, or nil without a certificate.
func (s *serving) tls(ctx context.Context, log *slog.Logger) (*tls.Config, error) {
	switch {
	case s.own.TLSCert == "" && s.own.TLSKey == "" && s.own.TLSClientCA == "":
		return nil, nil
	case s.own.TLSCert == "" || s.own.TLSKey == "":
		return nil, cli.Usage(errors.New("TLS needs --tls-cert and --tls-key"))
	}
	config, err := s.files.TLS(ctx, s.own.TLSCert, s.own.TLSKey, s.own.TLSClientCA, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", s.source("tls-cert"), strings.TrimPrefix(err.Error(), "service: TLS: "))
	}
	if info, err := os.Stat(s.own.TLSKey); err == nil { // once it was read, since it may be on a mount that hangs
		s.file.warnOfReaders(s.own.TLSKey, info.Mode(), "it holds the key of the certificate")
	}
	return config, nil
}

// listen opens the addresses that are on.
func (s *serving) listen() (_ map[string]net.Listener, err error) {
	listeners := make(map[string]net.Listener)
	defer func() {
		if err != nil {
			for _, l := range listeners {
				_ = l.Close() // it was not used
			}
		}
	}()
	for i, address := range []string{s.own.RESP, s.own.HTTP, s.own.GRPC, s.own.Probes} {
		protocol := protocols[i]
		if address == off {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return listeners, fmt.Errorf("%s: %w: choose another address, port 0, or off", s.source(protocol), err)
			}
			return listeners, cli.Usage(fmt.Errorf("%s: %w", s.source(protocol), err)) // no address of this machine
		}
		listeners[protocol] = l
	}
	if listeners["resp"] == nil && listeners["http"] == nil && listeners["grpc"] == nil {
		return listeners, cli.Usage(errors.New("--resp, --http and --grpc are all off: there is nothing to serve"))
	}
	return listeners, nil
}

// greet logs the store and the addresses, and shows how to call them.
func (s *serving) greet(log *slog.Logger, listeners map[string]net.Listener, store string) {
	attrs := []any{slog.String("store", store)}
	for _, protocol := range protocols {
		if l := listeners[protocol]; l != nil {
			attrs = append(attrs, slog.String(protocol, l.Addr().String()))
		}
	}
	log.Info("serving", attrs...)
	for _, l := range listeners {
		if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() && s.place.url == "" {
			log.Warn("other machines reach this server, and its store is a directory: another server with one of its own issues the same IDs; give both one --store", "directory", s.place.name())
			break
		}
	}
	if *s.logFormat == command.FormatJSON {
		return
	}
	// A server whose output is not read serves all the same.
	fmt.Fprint(s.Out, s.greeting(listeners))
	if s.Out.Flush() != nil {
		s.Out.Reset(io.Discard) // so that the end of the run does not meet the error again
	}
}

// greeting says how to call each protocol.
func (s *serving) greeting(listeners map[string]net.Listener) string {
	secure, token := s.own.TLSCert != "", len(s.file.Clients) > 0
	header := choose(token, ` -H "Authorization: Bearer $TOKEN"`, "")
	text := "IDs, from another terminal:\n"
	if l := listeners["http"]; l != nil {
		text += fmt.Sprintf("  curl -X POST%s '%s%s/v1/ids?n=3'\n", header, choose(secure, "https://", "http://"), s.reach(l))
	}
	if l := listeners["resp"]; l != nil {
		host, port, _ := net.SplitHostPort(s.reach(l)) // it was joined
		text += "  " + choose(token, `REDISCLI_AUTH="$TOKEN" `, "") + "redis-cli" + choose(host == "127.0.0.1", "", " -h "+host) + " -p " + port + choose(secure, " --tls", "") + " ID\n"
	}
	if l := listeners["grpc"]; l != nil {
		text += fmt.Sprintf("  grpcurl%s%s -d '{\"count\":3}' %s tickflake.v1.TickflakeService/Take\n", choose(secure, "", " -plaintext"), header, s.reach(l))
	}
	return text + "Ctrl-C ends the server.\n"
}

// reach returns the address at which a program on this machine reaches a listener.
func (s *serving) reach(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil { // no TCP
		return l.Addr().String()
	}
	switch ip := net.ParseIP(host); {
	case s.own.TLSCert != "" && len(s.config.Hosts) > 0: // a name of the certificate
		host = s.config.Hosts[0]
	case ip.IsUnspecified():
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
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

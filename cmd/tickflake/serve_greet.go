package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

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
	var ids, numbers strings.Builder
	secure, token := s.own.TLSCert != "", len(s.file.Clients) > 0
	if l := listeners["http"]; l != nil {
		base := choose(secure, "https://", "http://") + s.reach(l)
		curl := "  curl -X POST" + choose(token, ` -H "Authorization: Bearer $TOKEN"`, "")
		fmt.Fprintf(&ids, "%s '%s/v1/ids?n=3'\n", curl, base)
		fmt.Fprintf(&numbers, "%s %s/v1/sequences/orders\n", curl, base)
	}
	if l := listeners["resp"]; l != nil {
		host, port, _ := net.SplitHostPort(s.reach(l)) // it was joined
		redis := "  " + choose(token, `REDISCLI_AUTH="$TOKEN" `, "") + "redis-cli" + choose(host == "127.0.0.1", "", " -h "+host) + " -p " + port + choose(secure, " --tls", "")
		fmt.Fprintf(&ids, "%s ID\n", redis)
		fmt.Fprintf(&numbers, "%s INCR orders\n", redis)
	}
	if l := listeners["grpc"]; l != nil {
		grpc := "  grpcurl" + choose(secure, "", " -plaintext") + choose(token, ` -H "Authorization: Bearer $TOKEN"`, "")
		fmt.Fprintf(&ids, "%s -d '{\"count\":3}' %s tickflake.v1.TickflakeService/Take\n", grpc, s.reach(l))
		fmt.Fprintf(&numbers, "%s -d '{\"name\":\"orders\"}' %s tickflake.v1.TickflakeService/Number\n", grpc, s.reach(l))
	}
	create := "  " + program() + " sequence create orders" + s.storeArgument() + "\n"
	return "IDs, from another terminal:\n" + ids.String() +
		"Numbers of a sequence, which is created once:\n" + create + numbers.String() +
		"Ctrl-C ends the server.\n"
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

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// program returns how the user can run this program.
func program() string {
	name := os.Args[0]
	if strings.Contains(name, string(filepath.Separator)+"go-build") {
		return "go run ./cmd/tickflake"
	}
	return quoted(name)
}

// storeArgument returns the flag by which other commands find the sequences.
func (s *serving) storeArgument() string {
	switch {
	case s.place.url == "":
		return ""
	case hasSecret(s.place.url):
		return ` --store "$` + storeVariable + `"`
	}
	return " --store " + quoted(absolute(s.place.url))
}

// hasSecret reports whether the URL of a store may show a password: as that of its user, or
// in an option.
func hasSecret(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	return strings.Contains(rest, "@") || strings.Contains(strings.ToLower(rest), "pass")
}

// quoted returns a word of a shell.
func quoted(word string) string {
	if strings.IndexFunc(word, func(r rune) bool {
		return !strings.ContainsRune("/._-:,+@%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", r)
	}) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

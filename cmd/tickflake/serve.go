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
	"os/signal"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/internal/cli"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
)

const serveHelp = `Serve IDs and the numbers of sequences over the Redis protocol, gRPC and HTTP, so
that programs in any language can use them.

Without a flag, the IDs come from the per-user state directory, as those of
'tickflake generate' do, and the server listens on loopback only. It prints how to
call it. Sequences are those of 'tickflake sequence'. A fleet of servers shares a
store: give each the same --store. No two of them issue the same ID or number.

Every setting is a flag and a variable, with the same text: --max-batch 100 and
TICKFLAKE_MAX_BATCH=100. A flag goes before a variable, and an empty variable counts
as none. A list is a flag given several times, or words in a variable.

The file of --config has the clients of the server, and the rules by which sequences
are created when they are first asked for. docs/service.md has all its fields:

  clients:
    - {name: shop, token-hash: 5994471a…, sequences: [orders]}
  create:
    - {prefix: invoice-, mode: ordered, start: 1000}

With clients, each request needs a token; a client uses the sequences of its list
only. Without clients every program may ask. An address that is not on loopback needs
clients or --open, and TLS or --plaintext. At SIGHUP, and within five seconds of a
change, the clients, their token files and the certificates are read anew, and
nothing else.

SIGINT or SIGTERM ends the server in order: it is not ready for --unready-for, then
takes no new connection, finishes the requests that run, and releases its node
number. A second signal kills it; signals within 100 ms count as one. If the server
loses its --node for good, it ends with the exit code 1, so that a supervisor can
start it again. systemd is told when the server is ready.

` + nodeStoresHelp + `
Sequences are in the directory ` + sequenceDirectory + ` beside them, or in the store.`

const serveExamples = `  tickflake serve
  tickflake serve --grpc off --resp 127.0.0.1:0
  tickflake serve --store etcd://10.0.0.1:2379 --config /etc/tickflake/clients.yaml`

// protocols are the names of the flags of the addresses.
var protocols = []string{"resp", "http", "grpc", "probes"}

// serving is the command serve, with its settings.
type serving struct {
	*command.Console
	*settings
	*issuing
	file    file
	files   *service.Files  // that are watched
	running *service.Server // set before they are followed
	check   string          // a probe to ask; empty: serve
	own     ownSettings
	config  service.Config

	logFormat, logLevel *string
}

func newServe(c *command.Console) *cobra.Command { return newServeOf(&serving{Console: c}) }

func newServeOf(s *serving) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve IDs and numbers over the Redis protocol, gRPC and HTTP",
		Long:    serveHelp,
		Example: serveExamples,
		Args:    cobra.NoArgs, // --check live would ask for ready
	}
	cmd.Flags().SortFlags = false
	s.settings, s.files = &settings{cmd: cmd, sources: map[string]string{}}, service.NewFiles()
	s.table(cmd)
	cmd.Flags().StringVar(&s.file.path, "config", os.Getenv(variable("config")), "read clients, and rules for sequences, from `FILE` (default $"+variable("config")+", or else none)")
	cmd.Flags().Lookup("config").DefValue = ""
	command.Flag(cmd, "check", "ask the server that runs with these settings whether it is `ready or live`, and end: 0 is the exit code if it is (ready, if neither is named)", &s.check, func(text string) (string, error) {
		if text != "ready" && text != "live" {
			return "", fmt.Errorf("want ready or live, got %q", text)
		}
		return text, nil
	})
	cmd.Flags().Lookup("check").NoOptDefVal = "ready"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context()) }
	cmd.AddCommand(newServeToken(s.Console))
	return cmd
}

// table makes the settings.
func (s *serving) table(cmd *cobra.Command) {
	s.fields(&s.own, reflect.TypeFor[ownSettings]())
	s.issuing = newIssuing(cmd)
	s.fields(&s.config, reflect.TypeFor[seam.Serve]())
	s.logFormat = command.ChoiceFlag(cmd, "log-format", "log on standard error in `FORMAT`; with json, standard output stays empty", command.FormatText, command.FormatJSON)
	s.logLevel = command.ChoiceFlag(cmd, "log-level", "log from `LEVEL` on", "info", "debug", "warn", "error")
}

var slogLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func (s *serving) run(ctx context.Context) error {
	if err := s.fill(); err != nil {
		return err
	}
	s.place.source = s.source("store")
	if _, err := seam.SchemeOf(s.place.url); err != nil && s.place.url != "" {
		return s.place.urlError(err)
	}
	if s.check != "" {
		return s.ask(ctx)
	}
	log, config := s.log(), &s.config
	config.Strategy, config.StoreName, config.Logger = fmt.Sprint(*s.strategy), s.place.name(), log
	var err error
	if config.Clients, err = s.clients(ctx, log); err == nil {
		config.Create, err = s.file.rules()
	}
	if err == nil {
		config.TLS, err = s.tls(ctx, log)
	}
	for _, warning := range append(s.strays(os.Environ()), s.file.warnings...) {
		log.Warn(warning)
	}
	if err != nil {
		return err
	}
	return s.serve(ctx, log)
}

// log returns the logger of the server.
func (s *serving) log() *slog.Logger {
	options := &slog.HandlerOptions{Level: slogLevels[*s.logLevel]}
	var handler slog.Handler = slog.NewTextHandler(s.Err, options)
	if *s.logFormat == command.FormatJSON {
		handler = slog.NewJSONHandler(s.Err, options)
	}
	log := slog.New(handler)
	if s.Err == os.Stderr { // the command is the process
		slog.SetDefault(log) // for stores.Open
	}
	return log
}

// serve opens the listeners, the store and the sequences, and serves until ctx ends.
func (s *serving) serve(ctx context.Context, log *slog.Logger) (err error) {
	config := s.config
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // also while it starts, and while it releases its number: it must end nothing
	defer signal.Stop(hangups)
	listeners, err := s.listen()
	if err != nil {
		return err
	}
	config.RESP, config.HTTP, config.GRPC, config.Probes = listeners["resp"], listeners["http"], listeners["grpc"], listeners["probes"]
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // Run has closed them, unless it was not reached
		}
	}()
	if err := config.Validate(); err != nil { // before a node number is claimed
		return s.refused(err)
	}
	gen, err := s.claim(ctx, log)
	if err != nil {
		return err
	}
	defer gen.Close()
	config.Generator, config.Store = gen.Generator, gen.store
	config.StoreName += site(ctx, gen.store)
	config.Sequences = append(config.Sequences, sequence.WithVMClock(*s.vmclock))
	if s.place.url == "" {
		place := &place{kept: keptSequences, makes: true, timeout: s.place.timeout, directory: func() string { return sequenceDirectory }}
		bounded, cancel := place.within(ctx)
		sequences, err := place.open(bounded)
		cancel()
		if err != nil {
			return place.ended(ctx, bounded, err)
		}
		defer sequences.Close() //nolint:errcheck // every write is complete
		config.Store = sequences
	}
	running, err := service.New(config)
	if err != nil {
		return s.refused(err)
	}
	s.greet(log, listeners, config.StoreName)
	s.notify(log, daemon.SdNotifyReady)
	keeper, _ := gen.Keeper()
	return s.until(ctx, log, running, hangups, keeper.Err)
}

// until serves until ctx ends or the node number is lost for good, and drains. failure
// returns the state of the lease.
func (s *serving) until(ctx context.Context, log *slog.Logger, running *service.Server, hangups <-chan os.Signal, failure func() error) error {
	bounded, stop := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	// No further grant will come when the number is lost for good, and the rest of this one serves the requests
	// that run.
	helpers.Go(func() {
		for every := time.NewTicker(250 * time.Millisecond); bounded.Err() == nil; {
			select {
			case <-bounded.Done():
				every.Stop()
			case <-every.C:
				if err := failure(); errors.Is(err, lease.ErrLost) {
					stop(err)
				}
			}
		}
	})
	s.running = running
	helpers.Go(func() { s.files.Follow(bounded, hangups) })
	helpers.Go(func() {
		<-bounded.Done()
		s.notify(log, daemon.SdNotifyStopping)
	})
	err := running.Run(bounded)
	lost := context.Cause(bounded)
	stop(nil)
	helpers.Wait()
	if errors.Is(lost, lease.ErrLost) {
		return errors.Join(fmt.Errorf("the node number is lost: %w", lost), err)
	}
	return err
}

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

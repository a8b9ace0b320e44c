// Package service serves the IDs of a generator, and numbers of sequences, over the Redis
// protocol, gRPC and HTTP, so that programs in any language can use them.
//
// You need these names:
//
//   - [Config]: the generator, the store, the listeners, the clients and the limits.
//     [Config.Validate] finds its mistakes before a generator is opened.
//   - [New] and [Server.Run]: serve until a context ends, then drain.
//   - [NewFiles], [Files.TLS] and [Files.Follow]: certificates that are read again when their files change.
//   - [Server.ReloadClients]: other clients and tokens, without a restart.
//
// The command "tickflake serve" is this package with flags. Import the package to serve IDs
// beside the protocols of a program of your own.
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/stores"
)

// Config has the generator, store, listeners, clients and limits of a [Server]. The zero value
// of each field but Generator is usable, and one listener is needed.
// A number or duration of 0 stands for the default.
type Config struct {
	Generator *generator.Generator // of the IDs; the caller closes it after Run
	Strategy  string               // of the generator, as text, for people that ask; nothing depends on it
	StoreName string               // of the generator's store, as text without a password, for people that ask; nothing depends on it

	// Store holds the sequences. Without one there are none. The caller closes it after Run.
	Store     stores.Store
	Sequences []sequence.Option // for each sequence that is opened
	Create    []CreateRule      // sequences that are created when they are first asked for; the first rule that fits counts

	// MaxSequences bounds memory: where another sequence needs the room, the client with the most open
	// sequences loses the one that it has not used for longest. MaxObserved bounds series: a sequence that is
	// observed has 15, and the rest are added up as "(others)".
	MaxSequences int // sequences that are open at once: 1 to 1,000,000, 10,000 by default
	MaxObserved  int // sequences that have metrics of their own: 1 to 1,000,000, 100 by default

	// The listeners. A protocol without one is not served. Run closes them.
	RESP, GRPC, HTTP net.Listener
	// Probes is a listener for /livez and /readyz alone: HTTP without TLS and tokens, also from
	// other machines. Its connections are no part of MaxConnections.
	Probes net.Listener
	// TLS makes all listeners but Probes ask for TLS. See [Files.TLS].
	TLS *tls.Config
	// Hosts are names of the server: a web page of another name is refused.
	Hosts []string // beside its addresses and localhost

	// Clients are those that may ask. Without any, each program that can connect may ask. See
	// [Server.ReloadClients].
	Clients []Client

	// A listener that other machines can reach, because it is neither on loopback nor a Unix
	// socket, has two dangers. New fails unless each is averted or accepted: that every program may
	// ask, because there are no Clients and TLS asks for no client certificate, and that the network
	// shows tokens and answers, and can change them.
	AllowOpen      bool // serve every program that can connect, also where the address is not on loopback
	AllowPlaintext bool // serve without TLS, also where the address is not on loopback

	MaxBatch int64 // IDs in one request: 1 to 1,000,000, 10,000 by default
	// MaxAfter bounds how far a request for an ID above one that it names can move the generator ahead, for all
	// clients, where the strategy borrows.
	MaxAfter   time.Duration // how far the ID of a request for a larger one may lie ahead of the clock: 1ms to 24h, 100ms by default
	MaxNumbers int64         // numbers of a sequence in one request: 1 to 2⁵³, 1,000,000 by default
	// MaxConnections holds for each listener, besides up to a thousand connections that have not shown a token
	// yet. All listeners together have at most as many as the process may open files, less 256. After
	// MaxConnectionAge, a tenth more or less, a connection of HTTP or gRPC ends, so that its client finds new
	// servers, and calls under way have ReadTimeout to end; RESP has no message for that.
	MaxConnections   int           // 1 to 10,000,000, 16,384 by default; a client with a token has at most half, if its entry says no other number
	MaxConnectionAge time.Duration // 1s to 8760h, 1h by default
	Timeout          time.Duration // of a request that waits for its IDs or numbers: 1ms to 1h, 2s by default
	IdleTimeout      time.Duration // after which an unused connection is closed: 1ms to 8760h, 1h by default
	// ReadTimeout bounds a request from its first byte to its last, the writing of an answer, a TLS handshake,
	// and, if there are Clients, the time until a connection has shown a token.
	ReadTimeout time.Duration // 1ms to 1h, 10s by default
	// DrainTimeout is for the end of Run, after UnreadyFor.
	DrainTimeout time.Duration // 1ms to 24h, 10s by default
	UnreadyFor   time.Duration // for which the server says at the end that it is not ready, and still serves: 0 to 24h
	UseWithin    time.Duration // how old a prefetched ID may be when a client hands it out: 1ms to 24h, 1s by default

	Logger *slog.Logger // gets the refused requests, a few per second; slog.Default by default
}

// CreateRule is a rule: a sequence whose name begins with Prefix is created with the definition when it is
// first asked for.
type CreateRule struct {
	Prefix     string // as in the name of a sequence; empty: every name
	Definition sequence.Definition
}

// Server serves the protocols of a [Config]. Its methods are safe for concurrent use.
type Server struct {
	config Config // complete
	issuer *issuer.Issuer
	parts  []part

	connections total // of all listeners

	reloading sync.Mutex  // held by ReloadClients
	running   atomic.Bool // set once, by Run
}

// part is a protocol with its listener.
type part struct {
	protocol issuer.Protocol
	listener *limited
	server   server
}

// server is the server of a protocol.
type server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

var (
	errRan    = errors.New("service: Run was called before: make a new Server")
	errNotRun = errors.New("the server does not run yet")
)

// Run serves until ctx ends, and then drains. It says that it is not ready for UnreadyFor, and still serves.
// Then it stops accepting, closes connections that have not sent a whole request yet, with a token if one is
// needed, lets the requests that run end, closes all connections, and closes the sequences, which gives their
// unused numbers back. After UnreadyFor this takes DrainTimeout at most, of which three quarters are for
// requests. Run returns nil after a drain without loss. Otherwise the error names the protocols whose requests
// were cut off, and the sequences that could not give numbers back. If a listener fails, Run drains as well,
// and the error names it.
//
// Run closes the listeners. Call it once.
func (s *Server) Run(ctx context.Context) error {
	if s.running.Swap(true) {
		return errRan
	}
	type end struct {
		part part
		err  error
	}
	ended := make(chan end, len(s.parts))
	for _, p := range s.parts {
		go func() { ended <- end{p, p.server.Serve(p.listener)} }()
	}
	serving := len(s.parts)
	var failed error
	select {
	case <-ctx.Done():
	case e := <-ended:
		serving--
		failed = fmt.Errorf("service: %s stopped serving %s: %w", e.part.protocol, e.part.listener.Addr(), e.err)
		s.config.Logger.Error("a listener failed: the server drains", "protocol", e.part.protocol.String(), "error", e.err)
	}
	err := s.drain()
	for range serving {
		<-ended
	}
	return errors.Join(failed, err)
}

// drain ends everything within UnreadyFor and DrainTimeout.
func (s *Server) drain() error {
	s.issuer.Drain()
	time.Sleep(s.config.UnreadyFor)
	late := fmt.Errorf("the drain has taken longer than DrainTimeout, %s, allows", s.config.DrainTimeout)
	bound, cancel := context.WithTimeoutCause(context.Background(), s.config.DrainTimeout, late)
	defer cancel()
	requests, cancelRequests := context.WithTimeoutCause(bound, s.config.DrainTimeout/4*3, late)
	defer cancelRequests()
	errs := make(chan error, len(s.parts))
	for _, p := range s.parts {
		go func() { errs <- s.shutdown(requests, p) }()
	}
	var lost []error
	for range s.parts {
		lost = append(lost, <-errs)
	}
	lost = append(lost, s.issuer.Close(bound))
	return errors.Join(lost...)
}

// shutdown ends the server of one protocol.
func (s *Server) shutdown(ctx context.Context, p part) error {
	p.listener.drain()
	err := p.server.Shutdown(ctx)
	_ = p.listener.Close() // Shutdown has, unless Serve was not reached
	if err != nil {
		return fmt.Errorf("service: %s: requests were cut off: %w", p.protocol, context.Cause(ctx))
	}
	return nil
}

// Ready returns nil while the server accepts requests and its grant has time to spare, and
// else the reason. It never asks the store.
func (s *Server) Ready() error {
	if !s.running.Load() {
		return errNotRun
	}
	return s.issuer.Ready()
}

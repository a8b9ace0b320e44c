// Package rpc serves IDs and numbers over gRPC: the service of
// api/tickflake/v1/tickflake.proto, the standard health service without Watch, and reflection.
package rpc

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/internal/wire"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
)

const stopTime = time.Second // for calls to end whose connections are closed

// Server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	issuer      *issuer.Issuer
	config      *issuer.Config
	grpc        *grpc.Server
	draining    context.Context // ends when Shutdown begins
	drain       context.CancelFunc
	fingerprint uint64       // of the layout
	waiting     atomic.Int64 // handlers whose request is still to come; each adds 1 and takes it off
	streams     atomic.Int64 // of reflection; above the limit only while some are refused
}

// New returns a server.
func New(i *issuer.Issuer) *Server {
	s := &Server{issuer: i, config: i.Config(), fingerprint: wire.Fingerprint(i.Layout().String())}
	s.draining, s.drain = context.WithCancel(context.Background())
	transport := insecure.NewCredentials()
	if s.config.TLS != nil {
		transport = credentials.NewTLS(s.config.TLS)
	}
	s.grpc = grpc.NewServer(append(options(s.config), grpc.Creds(handshake{transport, i.Anyone()}), grpc.StreamInterceptor(s.reflect))...)
	s.register(tickflakev1.TickflakeService_ServiceDesc, methods...)
	s.register(grpc_health_v1.Health_ServiceDesc, health)
	reflection.Register(s.grpc)
	return s
}

// register registers these methods of a service, and no others of it.
func (s *Server) register(desc grpc.ServiceDesc, methods ...grpc.MethodDesc) {
	desc.Methods, desc.Streams = methods, nil
	desc.HandlerType = (*any)(nil) // methods has the handlers
	s.grpc.RegisterService(&desc, s)
}

// options are those of the server of grpc-go that do not call this package.
func options(c *issuer.Config) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(limit.Message),
		grpc.MaxHeaderListSize(limit.Headers),
		grpc.MaxConcurrentStreams(limit.Calls),
		// Requests are small. Else a client that sends much raises to 16 MiB what each of its
		// streams may have on its way, and a frame of one byte takes many times its size.
		grpc.StaticStreamWindowSize(limit.Window),
		grpc.StaticConnWindowSize(limit.Window),
		grpc.ConnectionTimeout(c.ReadTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: c.IdleTimeout, Time: limit.Ping, Timeout: limit.PingTimeout,
			MaxConnectionAge: c.MaxConnectionAge, MaxConnectionAgeGrace: c.ReadTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: limit.ClientPings, PermitWithoutStream: true,
		}),
	}
}

// handshake gives each connection of the server a [connection].
type handshake struct {
	credentials.TransportCredentials
	anyone *issuer.Client // nil: a token is needed
}

// connection is the AuthInfo of a connection, by which its calls find it.
type connection struct {
	credentials.AuthInfo
	issuer.Peer
}

func (h handshake) ServerHandshake(nc net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := h.TransportCredentials.ServerHandshake(nc)
	if err != nil {
		return nil, nil, err
	}
	c := &connection{AuthInfo: info, Peer: issuer.PeerOf(nc)}
	if h.anyone != nil {
		err = c.Known(h.anyone)
	}
	return secured, c, err
}

// Serve accepts connections until [Server.Shutdown], and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown stops accepting, lets the requests that run end, closes all connections, and
// returns when this is done. Streams end with UNAVAILABLE. When ctx ends it closes them at once, and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		go s.grpc.Stop() // GracefulStop returns soon after
		select {
		case <-done:
		case <-time.After(stopTime):
		}
		return ctx.Err()
	}
}

// Package rpc serves IDs and numbers over gRPC: the service of
// api/tickflake/v1/tickflake.proto, the standard health service, and reflection.
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
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// These limits hold for each connection. They have no configuration: a request has a few
// bytes and a token.
const (
	maxMessage     = 16 << 10
	maxHeaders     = 16 << 10
	maxCalls       = 100      // at once, on one connection
	window         = 64 << 10 // bytes that a client may send before they are read
	pingInterval   = time.Minute
	pingTimeout    = 20 * time.Second
	minClientPings = 5 * time.Second // a client that pings more often is disconnected

	stopTime = time.Second // for calls to end whose connections are closed
)

// Server serves one listener. Its methods are safe for concurrent use.
type Server struct {
	tickflakev1.UnimplementedTickflakeServiceServer

	issuer   *issuer.Issuer
	config   *issuer.Config
	grpc     *grpc.Server
	draining context.Context // ends when Shutdown begins
	drain    context.CancelFunc
	streams  atomic.Int64 // of IDs; never above the limit but for the moment in which one is refused
	waiting  atomic.Int64 // handlers whose request is still to come; each adds 1 and takes it off
}

// New returns a server.
func New(i *issuer.Issuer) *Server {
	s := &Server{issuer: i, config: i.Config()}
	s.draining, s.drain = context.WithCancel(context.Background())
	transport := insecure.NewCredentials()
	if s.config.TLS != nil {
		transport = credentials.NewTLS(s.config.TLS)
	}
	s.grpc = grpc.NewServer(append(options(s.config), grpc.Creds(handshake{transport, i.Anyone()}), grpc.InTapHandle(s.begin), grpc.StreamInterceptor(s.intercept))...)
	desc := tickflakev1.TickflakeService_ServiceDesc
	desc.Methods = methods
	s.grpc.RegisterService(&desc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, checks{Server: s})
	reflection.Register(s.grpc)
	return s
}

// options are those of the server of grpc-go that do not call this package.
func options(c *issuer.Config) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxCalls),
		// Requests are small. Else a client that sends much raises to 16 MiB what each of its
		// streams may have on its way, and a frame of one byte takes many times its size.
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ConnectionTimeout(c.ReadTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: c.IdleTimeout, Time: pingInterval, Timeout: pingTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: minClientPings, PermitWithoutStream: true,
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
	open atomic.Int64 // streams of health and reflection; never above the limit
}

func (h handshake) ServerHandshake(nc net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := h.TransportCredentials.ServerHandshake(nc)
	if err != nil {
		return nil, nil, err
	}
	c := &connection{AuthInfo: info, Peer: issuer.PeerOf(nc)}
	if h.anyone != nil {
		c.Known(h.anyone)
	}
	return secured, c, nil
}

// connectionOf returns the connection of a call.
func connectionOf(ctx context.Context) *connection {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(*connection)
}

// Serve accepts connections until [Server.Shutdown], and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown stops accepting, lets the requests that run end, closes all connections, and
// returns when this is done. Streams end with UNAVAILABLE, those of IDs after the request
// that they answer. When ctx ends it closes them at once, and returns the error of ctx.
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

// Package etcdserver runs an etcd in this process, so that the examples need none that is
// installed. It is one server; a real fleet has three or more, on machines of their own.
package etcdserver

import (
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// Server is an etcd that runs. It is for one goroutine.
type Server struct {
	etcd *embed.Etcd // nil after Stop
	addr string
}

// New returns an etcd that serves on a free port of 127.0.0.1 and keeps its data in dir.
func New(dir string) (*Server, error) {
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "fatal" // it logs the end of its listeners as an error; StartEtcd returns the real ones
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = free, free
	config.ListenPeerUrls, config.AdvertisePeerUrls = free, free
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &Server{etcd: server, addr: server.Clients[0].Addr().String()}, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start etcd: %w", err)
	}
}

// Stop ends the etcd. A second call does nothing.
func (s *Server) Stop() {
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
}

// URL is the address of the etcd, for stores.
func (s *Server) URL() string { return "etcd://" + s.addr }

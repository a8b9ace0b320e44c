package main

import (
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd runs an etcd of our own on a free port, with its data in dir, and returns
// its address. It is one server, in this process; a real fleet has three or more, on
// machines of their own.
func startEtcd(dir string) (server *embed.Etcd, addr string, err error) {
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "fatal" // it calls the end of its listeners an error; StartEtcd returns the real ones
	local := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = local, local
	config.ListenPeerUrls, config.AdvertisePeerUrls = local, local
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err = embed.StartEtcd(config)
	if err != nil {
		return nil, "", fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, server.Clients[0].Addr().String(), nil
	case err := <-server.Err():
		server.Close()
		return nil, "", fmt.Errorf("start etcd: %w", err)
	}
}

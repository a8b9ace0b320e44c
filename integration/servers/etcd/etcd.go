// Package etcd links etcd into a program, for package servers: importing it makes the kind
// servers.Etcd known.
package etcd

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
)

func init() {
	servers.Linked(servers.Etcd, serve, prepare, ready)
}

// serve runs etcd as it runs by default, with its syncing to disk.
func serve(file string) error {
	config, err := embed.ConfigFromFile(file)
	if err != nil {
		return err
	}
	running, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-running.Err()
}

// prepare makes the settings of a single server, unless those that are wanted name a cluster.
func prepare(s *servers.Server, w servers.Wanted) ([]string, error) {
	peers, err := program.Port()
	if err != nil {
		return nil, err
	}
	client, peer := "http://"+s.Addr, fmt.Sprint("http://127.0.0.1:", peers)
	s.URL = "etcd://" + s.Addr
	lines := []string{
		"name: single", "data-dir: " + s.Dir + "/data", "log-level: error", "listen-client-urls: " + client, "advertise-client-urls: " + client,
		"bcrypt-cost: 4", // with the race detector, a password takes long enough
		"listen-peer-urls: " + peer, "initial-advertise-peer-urls: " + peer, "initial-cluster: single=" + peer,
	}
	for _, wanted := range w.Settings {
		name, _, _ := strings.Cut(wanted, ": ")
		for i, line := range lines {
			if strings.HasPrefix(line, name+": ") {
				lines[i] = ""
			}
		}
		lines = append(lines, wanted)
	}
	return lines, nil
}

func ready(ctx context.Context, s *servers.Server) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + s.Addr}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close() //nolint:errcheck // only asked a question
	_, err = client.Get(ctx, "ready")
	return err
}

// Package nats links NATS into a program, for package servers: importing it makes the kind
// servers.NATS known.
package nats

import (
	"context"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tickflake/tickflake/integration/servers"
)

func init() {
	servers.Linked(servers.NATS, serve, func(s *servers.Server, w servers.Wanted) ([]string, error) {
		s.URL = "nats://" + s.Addr
		return Settings(s, w.Settings...), nil
	}, ready)
}

// Settings are the lines of the file of settings of a server, for its Configure: as the
// package doc of the engine wants it, and further ones.
func Settings(s *servers.Server, further ...string) []string {
	return append([]string{
		`server_name: "n` + s.Port() + `"`, `listen: "` + s.Addr + `"`,
		`jetstream { store_dir: "` + s.Dir + `", sync_interval: always }`,
	}, further...)
}

func serve(file string) error {
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		return err
	}
	options.NoSigs = true
	running, err := server.NewServer(options)
	if err != nil {
		return err
	}
	running.Start()
	running.WaitForShutdown()
	return nil
}

func ready(ctx context.Context, s *servers.Server) error {
	conn, err := natsgo.Connect(s.URL)
	if err != nil {
		if strings.Contains(err.Error(), "Authorization") {
			return nil // it answers, and a test has set a password
		}
		return err
	}
	defer conn.Close()
	client, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	_, err = client.AccountInfo(ctx)
	return err
}

package service

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig"
	"github.com/tickflake/tickflake/internal/rig/server"
	"github.com/tickflake/tickflake/internal/rig/servertest"
	"github.com/tickflake/tickflake/service/servicetest"
)

// "tickflake serve" passes the contract as a program, with its flags and its file.
func TestService(t *testing.T) {
	t.Parallel()
	servicetest.TestService(t, func(t *testing.T, s servicetest.Settings) *servicetest.Service {
		p := run(t, s)
		return &servicetest.Service{Log: p.Output, Dial: func(ctx context.Context, protocol string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", p.at[protocol])
		}}
	})
}

// program is a process of "tickflake serve".
type program struct {
	*rig.Process
	at map[string]string // its addresses, by protocol
}

// run runs "tickflake serve" with settings until the test ends. Sequences whose names begin with
// "orders" and "tickets" are there.
func run(t *testing.T, s servicetest.Settings) *program {
	t.Helper()
	const probes = "probes"
	path, err := rig.Build("./cmd/tickflake", false)
	require.NoError(t, err)
	p := &program{at: make(map[string]string)}
	dir, c := t.TempDir(), s.Config
	settings := fmt.Sprintf("store: %s\naccess-log: %d\nlog-format: json\nnode: 1\n", filepath.Join(dir, "store"), c.AccessLog)
	for _, name := range append([]string{probes}, servicetest.Protocols...) {
		p.at[name] = net.JoinHostPort("127.0.0.1", fmt.Sprint(servertest.Port(t)))
		settings += name + ": " + p.at[name] + "\n"
	}
	for name, value := range map[string]any{"layout": s.Layout, "strategy": s.Strategy, "max-batch": c.MaxBatch, "max-numbers": c.MaxNumbers, "request-timeout": c.Timeout} {
		if text := fmt.Sprint(value); text != "" && text != "0" && text != "0s" {
			settings += name + ": " + text + "\n"
		}
	}
	if s.TLS != (servicetest.Files{}) {
		settings += "tls-cert: " + s.TLS.Cert() + "\ntls-key: " + s.TLS.Key() + "\ntls-client-ca: " + s.TLS.ClientCA() + "\n"
	}
	settings += "create: [{prefix: orders, start: 1}, {prefix: tickets, mode: ordered, start: 1, max: 3}]\n"
	if len(c.Clients) > 0 {
		settings += "clients:\n"
	}
	for _, client := range c.Clients {
		settings += fmt.Sprintf("- {name: %s, token-hash: %x, ids: %t", client.Name, sha256.Sum256([]byte(client.Token)), !client.NoIDs)
		if len(client.Sequences) > 0 {
			settings += ", sequences: ['" + strings.Join(client.Sequences, "', '") + "']"
		}
		if client.Rate > 0 {
			settings += fmt.Sprintf(", rate: %g, burst: %d", client.Rate, client.Burst)
		}
		settings += "}\n"
	}
	file := filepath.Join(dir, "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	p.Process, err = server.Start(t.Context(), rig.Config{
		Path: path, Args: []string{"serve", "--config", file}, Quit: syscall.SIGTERM,
		Ready: func(ctx context.Context) error { _, err := rig.Get(ctx, "http://"+p.at[probes]+"/readyz"); return err },
	})
	require.NoError(t, err, settings)
	t.Cleanup(func() { require.NoError(t, p.Stop()) })
	return p
}

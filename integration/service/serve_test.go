package service

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
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

// served is a process of "tickflake serve".
type served struct {
	*fleet.Server
	at    map[string]string // its addresses, by protocol
	port  int               // of the Redis protocol
	store string            // the directory
}

// tickets are segmented, and orders ordered, each with what comes after these words.
var tickets, orders = service.Create{Prefix: "tickets", Definition: sequence.Definition{Start: 1}},
	service.Create{Prefix: "orders", Definition: sequence.Definition{Start: 1, Mode: sequence.Ordered}}

// serve runs "tickflake serve" with tickets and orders until the test ends. It logs every request, unless change,
// which may be nil, says otherwise.
func serve(t *testing.T, change func(*servicetest.Settings)) *served {
	t.Helper()
	s := servicetest.Settings{Config: service.Config{AccessLog: 1, Create: []service.Create{tickets, orders}}}
	if change != nil {
		change(&s)
	}
	return run(t, s)
}

// run runs "tickflake serve" with settings until the test ends.
func run(t *testing.T, s servicetest.Settings) *served {
	t.Helper()
	dir, c := t.TempDir(), s.Config
	p := &served{store: filepath.Join(dir, "store")}
	settings := map[string]any{"access-log": c.AccessLog, "log-format": "json", "node": 1}
	for name, value := range map[string]any{"layout": s.Layout, "strategy": s.Strategy, "max-batch": c.MaxBatch, "max-numbers": c.MaxNumbers, "request-timeout": c.Timeout} {
		if text := fmt.Sprint(value); text != "" && text != "0" && text != "0s" {
			settings[name] = text
		}
	}
	if s.TLS != (servicetest.Files{}) {
		settings["tls-cert"], settings["tls-key"] = s.TLS.Cert(), s.TLS.Key()
		if _, err := os.Stat(s.TLS.ClientCA()); err == nil {
			settings["tls-client-ca"] = s.TLS.ClientCA()
		}
	}
	add := func(list string, entry map[string]any) {
		entries, _ := settings[list].([]any)
		settings[list] = append(entries, entry)
	}
	for _, r := range c.Create {
		add("create", map[string]any{"prefix": r.Prefix, "mode": r.Definition.Mode.String(), "start": r.Definition.Start, "max": r.Definition.Max})
	}
	for _, client := range c.Clients {
		entry := map[string]any{"name": client.Name, "token-hash": fmt.Sprintf("%x", sha256.Sum256([]byte(client.Token))), "ids": !client.NoIDs, "metrics": client.Metrics}
		if len(client.Sequences) > 0 {
			entry["sequences"] = client.Sequences
		}
		if client.Rate > 0 {
			entry["rate"], entry["burst"] = client.Rate, client.Burst
		}
		add("clients", entry)
	}
	text, err := json.Marshal(settings) // which is YAML as well
	require.NoError(t, err)
	file := filepath.Join(dir, "settings.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	p.Server, err = fleet.Serve(t.Context(), fleet.ServeConfig{Store: p.store, Args: []string{"--config", file}})
	require.NoError(t, err, string(text))
	p.at = map[string]string{servicetest.RESP: p.RESP, servicetest.GRPC: p.GRPC, servicetest.HTTP: p.HTTP}
	_, err = fmt.Sscanf(p.RESP, "127.0.0.1:%d", &p.port)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		if t.Failed() {
			t.Logf("the server logged:\n%.5000s", p.Output())
		}
	})
	return p
}

// away makes the store one that cannot be reached, or is there again.
func (p *served) away(t *testing.T, yes bool) {
	t.Helper()
	if yes {
		require.NoError(t, os.Rename(p.store, p.store+"-away"))
		require.NoError(t, os.WriteFile(p.store, nil, 0o600))
		return
	}
	require.NoError(t, os.Remove(p.store))
	require.NoError(t, os.Rename(p.store+"-away", p.store))
}

// requests returns how many requests of methods, a pattern, the server has refused with a code. It waits until
// the log has one, and one of the method last that was served later.
func (p *served) requests(t *testing.T, methods, code, last string) (n int) {
	t.Helper()
	refused := regexp.MustCompile(`"method":"` + methods + `".*"code":"` + code + `"`)
	served := regexp.MustCompile(`"msg":"request".*"method":"` + last + `".*"items":[1-9]`)
	require.Eventually(t, func() bool {
		n = len(refused.FindAllString(p.Output(), -1))
		return n > 0 && served.MatchString(p.Output())
	}, patience, time.Millisecond)
	return n
}

// withTLS gives a server a certificate of a new authority, and returns the path of the authority's own.
func withTLS(t *testing.T, s *servicetest.Settings) (path string) {
	t.Helper()
	a := servicetest.NewAuthority(t)
	certificate, key := a.Issue(t, "localhost", servicetest.ForServers, time.Hour)
	s.TLS = servicetest.NewFiles(t)
	s.TLS.Put(t, certificate, key, a.PEM())
	path = filepath.Join(t.TempDir(), "authority.pem")
	require.NoError(t, os.Rename(s.TLS.ClientCA(), path)) // the clients have no certificates
	return path
}

package service

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/service/servicetest"
)

// settings are those of "tickflake serve", and what its file has: clients and create.
type settings map[string]any

// served is a process of "tickflake serve".
type served struct {
	*program.Server
	port  int    // of the Redis protocol
	store string // the directory
}

// rules create the sequences tickets, which is segmented, and orders, which is ordered, each with what comes after
// these words.
var rules = []settings{{"prefix": "tickets", "start": 1, "mode": "segmented"}, {"prefix": "orders", "start": 1, "mode": "ordered"}}

// client is one that has a token, and may take IDs and the numbers of all sequences.
func client(name, token string) settings {
	return settings{"name": name, "token-hash": fmt.Sprintf("%x", sha256.Sum256([]byte(token))), "sequences": []string{"*"}}
}

// serve runs "tickflake serve" with the rules until the test ends.
func serve(t *testing.T, changed settings) *served {
	t.Helper()
	all := settings{"log-format": "json", "node": 1, "create": rules}
	maps.Copy(all, changed)
	file, args := settings{}, []string{}
	for name, value := range all {
		if name == "clients" || name == "create" {
			file[name] = value
		} else {
			args = append(args, fmt.Sprintf("--%s=%v", name, value))
		}
	}
	text, err := json.Marshal(file) // which is YAML as well
	require.NoError(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "clients.yaml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	p := &served{store: filepath.Join(dir, "store")}
	p.Server, err = program.Serve(t.Context(), program.ServeConfig{Store: p.store, Args: append(args, "--config", path)})
	require.NoError(t, err, string(text))
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

// requests returns how many requests of the Redis protocol the server has refused with a code.
func (p *served) requests(t *testing.T, code string) int {
	t.Helper()
	all, err := p.Metrics(t.Context())
	require.NoError(t, err)
	return int(all[`tickflake_service_requests_total{tickflake_service_code="`+code+`",tickflake_service_protocol="resp"}`])
}

// withTLS returns settings with a certificate of a new authority, and the path of the authority's own.
func withTLS(t *testing.T) (s settings, path string) {
	t.Helper()
	a, files := servicetest.NewAuthority(t), servicetest.NewFiles(t)
	certificate, key := a.Issue(t, "localhost", servicetest.ForServers, time.Hour)
	files.Put(t, certificate, key, a.PEM())
	return settings{"tls-cert": files.Cert, "tls-key": files.Key}, files.ClientCA // the clients have no certificates
}

package service_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/stores/storetest"
)

const token = "a-token-of-0123456789"

// far is a listener whose address other machines can reach. It is not listened on.
type far struct{ net.Listener }

func (far) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6380} }

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	gen := newGenerator(t)
	near := listen(t)
	sum := sha256.Sum256([]byte(token))
	empty := sha256.Sum256(nil)
	rules := func(all ...service.CreateRule) func(*service.Config) {
		return func(config *service.Config) { config.Store, config.Create = storetest.NewMemory(), all }
	}
	clients := func(all ...service.Client) func(*service.Config) {
		all[0].Name = cmp.Or(all[0].Name, "shop")
		return func(config *service.Config) { config.Clients = all }
	}
	secured := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }}
	mutual := secured.Clone()
	mutual.ClientAuth = tls.RequireAndVerifyClientCert
	asked := secured.Clone()
	asked.ClientAuth = tls.RequireAnyClientCert // without a check of the certificate
	for name, c := range map[string]struct {
		change func(*service.Config)
		want   string // in the error; empty: there is none
	}{
		"complete":            {func(*service.Config) {}, ""},
		"no generator":        {func(c *service.Config) { c.Generator = nil }, "Config.Generator: is nil"},
		"no listener":         {func(c *service.Config) { c.RESP = nil }, "no listener: set RESP, GRPC or HTTP"},
		"batch below 1":       {func(c *service.Config) { c.MaxBatch = -1 }, "Config.MaxBatch: -1: want 1 to 1000000, or 0 for the default, which is 10000"},
		"batch too large":     {func(c *service.Config) { c.MaxBatch = 1_000_001 }, "Config.MaxBatch: 1000001"},
		"timeout":             {func(c *service.Config) { c.Timeout = time.Microsecond }, "Config.Timeout: 1µs: want 1ms to 1h, or 0 for the default, which is 2s"},
		"rules without store": {func(c *service.Config) { c.Create = []service.CreateRule{{Prefix: "a"}} }, "Config.Create: there are 1 rules, and no Store"},
		"prefix":              {rules(service.CreateRule{Prefix: "a b"}), "Config.Create: Prefix"},
		"definition":          {rules(service.CreateRule{Prefix: "a", Definition: sequence.Definition{Start: 5, Max: 4}}), `Config.Create: of "a"`},
		"hidden rule":         {rules(service.CreateRule{Prefix: "a"}, service.CreateRule{Prefix: "ab"}), `the rule of "ab" is never used`},
		"every prefix":        {rules(service.CreateRule{}), ""},
		"host with port":      {func(c *service.Config) { c.Hosts = []string{"ids.example:80"} }, "Config.Hosts"},
		"TLS without a key":   {func(c *service.Config) { c.TLS = &tls.Config{} }, "Config.TLS: has no certificate"},
		"old TLS":             {func(c *service.Config) { c.TLS = secured.Clone(); c.TLS.MinVersion = tls.VersionTLS11 }, "MinVersion is TLS 1.1: want TLS 1.2"},
		"far":                 {func(c *service.Config) { c.RESP = far{} }, "Config.RESP: 10.0.0.1:6380 can be reached from other machines, and there is no TLS"},
		"far, plaintext":      {func(c *service.Config) { c.RESP, c.AllowPlaintext = far{}, true }, "every program may ask"},
		"far, open":           {func(c *service.Config) { c.RESP, c.AllowOpen = far{}, true }, "there is no TLS"},
		"far, both":           {func(c *service.Config) { c.RESP, c.AllowOpen, c.AllowPlaintext = far{}, true, true }, ""},
		"far, mutual TLS":     {func(c *service.Config) { c.RESP, c.TLS = far{}, mutual }, ""},
		"far, any client":     {func(c *service.Config) { c.RESP, c.TLS = far{}, asked }, "every program may ask"},
		"far, TLS and token": {func(c *service.Config) {
			clients(service.Client{Tokens: []string{token}})(c)
			c.RESP, c.TLS = far{}, secured
		}, ""},
		"token":                {clients(service.Client{Tokens: []string{token}}), ""},
		"hash":                 {clients(service.Client{TokenHashes: []string{hex.EncodeToString(sum[:])}}), ""},
		"short token":          {clients(service.Client{Tokens: []string{"short"}}), `Config.Clients[0]: client "shop": its token has 5 bytes: want 16 to 256`},
		"token with space":     {clients(service.Client{Tokens: []string{"a token with spaces in"}}), "its token holds ' ' at byte 2"},
		"no token":             {clients(service.Client{}), "it has 0 tokens and hashes"},
		"token and hash":       {clients(service.Client{Tokens: []string{token}, TokenHashes: []string{hex.EncodeToString(sum[:])[:62] + "00"}}), ""},
		"three tokens":         {clients(service.Client{Tokens: []string{token, token + "2", token + "3"}}), "it has 3 tokens and hashes: want one, or two"},
		"every host":           {func(c *service.Config) { c.Hosts = []string{"*"} }, "Config.Hosts"},
		"negative connections": {clients(service.Client{Tokens: []string{token}, MaxConnections: -1}), "its largest number of connections is -1"},
		"long hash":            {clients(service.Client{TokenHashes: []string{hex.EncodeToString(sum[:]) + "00"}}), "its token-hash has 66 characters"},
		"hash of nothing":      {clients(service.Client{TokenHashes: []string{hex.EncodeToString(empty[:])}}), "empty token"},
		"bad name":             {clients(service.Client{Name: "a\nb", Tokens: []string{token}}), "its name"},
		"negative rate":        {clients(service.Client{Tokens: []string{token}, Rate: -1}), "its rate is -1"},
		"burst alone":          {clients(service.Client{Tokens: []string{token}, Burst: 5}), "no effect without a rate"},
		"nothing allowed":      {clients(service.Client{Tokens: []string{token}, NoIDs: true}), "it may do nothing"},
		"metrics alone":        {clients(service.Client{Tokens: []string{token}, NoIDs: true, Metrics: true}), ""},
		"negative sequences":   {clients(service.Client{Tokens: []string{token}, MaxSequences: -1}), "its largest number of sequences is -1"},
		"bad pattern":          {clients(service.Client{Tokens: []string{token}, Sequences: []string{"a b*"}}), "its sequences"},
		"one name":             {clients(service.Client{Tokens: []string{token}}, service.Client{Name: "shop", Tokens: []string{token + "2"}}), `Config.Clients[1]: client "shop": its name is taken`},
		"one token":            {clients(service.Client{Tokens: []string{token}}, service.Client{Name: "b", TokenHashes: []string{hex.EncodeToString(sum[:])}}), `Config.Clients[1]: client "b": it has the same token as shop`},
	} {
		t.Run(name, func(t *testing.T) {
			config := service.Config{Generator: gen, RESP: near}
			c.change(&config)
			err := config.Validate()
			if strings.HasPrefix(c.want, "Config.Generator") || strings.Contains(c.want, "no Store") || c.want == "" {
				require.NoError(t, err, "New finds it")
			} else {
				require.ErrorContains(t, err, c.want)
			}
			s, err := service.New(config)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			assert.Nil(t, s)
			assert.NotContains(t, err.Error(), token)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestTokensAreNotPrinted(t *testing.T) {
	t.Parallel()
	c := service.Config{Clients: []service.Client{{Name: "shop", Tokens: []string{token}, TokenHashes: []string{"5994471a"}}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		for _, value := range []any{c.Clients, c.Clients[0], &c.Clients[0], struct{ C service.Client }{c.Clients[0]}, map[string]service.Client{"a": c.Clients[0]}} {
			text := fmt.Sprintf(verb, value)
			assert.NotContains(t, text, token, verb)
			assert.NotContains(t, text, hex.EncodeToString([]byte(token)), verb)
			assert.NotContains(t, text, "5994471a", verb)
		}
		assert.NotContains(t, fmt.Sprintf(verb, c), token)
	}
	assert.Contains(t, fmt.Sprintf("%+v", c), "client shop")
	text, err := json.Marshal(c.Clients)
	require.NoError(t, err)
	assert.Equal(t, `["shop"]`, string(text))
	var b bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
		slog.New(handler).Info("start", "client", c.Clients[0], "clients", c.Clients)
	}
	assert.Contains(t, b.String(), "shop")
	assert.NotContains(t, b.String(), token)
	assert.NotContains(t, b.String(), "5994471a")
}

// New files are in use within five seconds, and at once at a signal. Files that do not fit leave the old certificate, and are
// logged once. servicetest shakes hands with the result.
func TestTLSFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, l, paths, all := servicetest.NewAuthority(t), &logs{}, servicetest.NewFiles(t), service.NewFiles()
		var c *tls.Config
		name := func() string {
			certificate, err := c.GetCertificate(nil)
			require.NoError(t, err)
			return certificate.Leaf.Subject.CommonName
		}
		first, firstKey := a.Issue(t, "first", servicetest.ForServers, time.Hour)
		second, secondKey := a.Issue(t, "second", servicetest.ForServers, 24*time.Hour)
		_, err := service.NewFiles().TLS(t.Context(), paths.Cert, paths.Key, "", nil)
		require.ErrorIs(t, err, os.ErrNotExist)
		paths.Put(t, first, firstKey, []byte("nothing"))
		_, err = service.NewFiles().TLS(t.Context(), paths.Cert, paths.Key, paths.ClientCA, nil)
		require.ErrorContains(t, err, "ca.crt: there is no certificate of an authority")
		c, err = all.TLS(t.Context(), paths.Cert, paths.Key, "", l.logger())
		require.NoError(t, err)
		assert.EqualValues(t, tls.VersionTLS12, c.MinVersion)
		signals := make(chan os.Signal)
		go all.Follow(t.Context(), signals)
		paths.Put(t, append([]byte("\ufeff"), second...), secondKey, nil) // as editors of Windows write it
		time.Sleep(5 * time.Second)
		assert.Equal(t, "second", name())
		assert.Contains(t, l.String(), "TLS files were read again")

		for i, bad := range []func(){
			func() { paths.Put(t, first, secondKey, nil) },
			func() { paths.Put(t, first[:100], firstKey, nil) },
			func() { paths.Put(t, nil, nil, nil) },
			func() { require.NoError(t, os.Remove(paths.Cert)) },
		} {
			bad()
			time.Sleep(20 * time.Second)
			assert.Equal(t, "second", name())
			assert.Len(t, lines(l.String(), "new TLS files cannot be used"), i+1)
		}
		paths.Put(t, first, firstKey, nil)
		signals <- syscall.SIGHUP
		signals <- syscall.SIGHUP // the first was seen to
		assert.Equal(t, "first", name())
		time.Sleep(time.Hour)
		paths.Put(t, first, append(firstKey, '\n'), nil)
		time.Sleep(5 * time.Second)
		assert.Equal(t, "first", name(), "an expired one is better than none")
		assert.Contains(t, l.String(), "has expired at")
	})
}

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

// serveSamples are three values for each setting: for the file, the variable and the flag.
var serveSamples = map[string][3]string{
	"resp":            {"127.0.0.1:1", "localhost:2", "off"},
	"http":            {"off", "localhost:0", ":3"},
	"grpc":            {"127.0.0.1:1", "off", "127.0.0.1:0"},
	"probes":          {"127.0.0.1:1", "localhost:0", ":3"},
	"host":            {"ids.example", "a.example b.example", "c.example"},
	"open":            {"true", "false", "true"},
	"plaintext":       {"true", "false", "true"},
	"store":           {"/nosuch/a", "etcd://b:2379?namespace=x", "file:/nosuch/c"},
	"timeout":         {"1s", "2s", "3s"},
	"layout":          {"twitter", "javascript", "time=41,node=6,sequence=16,tick=1ms,epoch=2026-01-01T00:00:00Z"},
	"strategy":        {"reject", "borrow:1s", "wait:2s"},
	"node":            {"1", "any", "3"},
	"window":          {"1s", "2s", "3s"},
	"max-sequences":   {"1", "2", "3"},
	"max-observed":    {"1", "2", "3"},
	"tls-cert":        {"a.pem", "b.pem", "c.pem"},
	"tls-key":         {"a.pem", "b.pem", "c.pem"},
	"tls-client-ca":   {"a.pem", "b.pem", "c.pem"},
	"max-batch":       {"1", "2", "3"},
	"max-numbers":     {"1", "2", "3"},
	"max-connections": {"1", "2", "3"},
	"request-timeout": {"1s", "5s", "3s"},
	"idle-timeout":    {"1s", "2s", "3s"},
	"read-timeout":    {"1s", "2s", "3s"},
	"drain-timeout":   {"1s", "2s", "3s"},
	"unready-for":     {"1s", "0s", "3s"},
	"use-within":      {"3s", "2s", "4s"},
	"spare":           {"1s", "2s", "0s"},
	"access-log":      {"1", "2", "3"},
	"log-format":      {"json", "text", "json"},
}

// newServer returns the command serve, to look at its settings.
func newServer() *serving {
	c := &command.Console{Out: bufio.NewWriter(io.Discard), Err: io.Discard}
	cmd := newServe(c)
	s := &serving{Console: c, settings: &settings{cmd: cmd}}
	cmd.ResetFlags()
	s.table(cmd)
	return s
}

// configFile writes a configuration file.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "serve.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// printed returns what serve --print-config prints, without comments.
func printedConfig(t *testing.T, args ...string) map[string]any {
	t.Helper()
	got := tickflake(append([]string{"serve", "--print-config"}, args...)...)
	require.Equal(t, result{0, got.out, ""}, got)
	values := make(map[string]any)
	require.NoError(t, yaml.Unmarshal([]byte(got.out), &values), got.out)
	return values
}

// valueOf returns a text as the file shows it.
func valueOf(t *testing.T, list bool, text string) any {
	t.Helper()
	if list {
		var all []any
		for _, word := range strings.Fields(text) {
			all = append(all, word)
		}
		return all
	}
	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte("x: "+text), &values))
	return values["x"]
}

// Every setting can be given in the file, by its variable and by its flag, and the latter
// goes before the former.
func TestServeSettings(t *testing.T) {
	settings := newServer().all
	require.Len(t, settings, len(serveSamples))
	defaults := printedConfig(t)
	for _, one := range settings {
		t.Run(one.Name, func(t *testing.T) {
			samples, known := serveSamples[one.Name]
			require.True(t, known, "a new setting belongs in serveSamples")
			line := one.Name + ": " + samples[0]
			if one.list {
				line = one.Name + ":\n  - " + samples[0]
			}
			path := configFile(t, line)
			check := func(text, from string, args ...string) {
				t.Helper()
				want := valueOf(t, one.list, text)
				assert.NotEqual(t, defaults[one.Name], want, "a sample is the default")
				assert.Equal(t, want, printedConfig(t, append(args, "--config", path)...)[one.Name], from)
			}
			check(samples[0], "the file")
			t.Setenv(variable(one.Name), samples[1])
			if samples[1] != "any" && samples[1] != "false" && samples[1] != "text" && samples[1] != "0s" {
				check(samples[1], "the variable")
			} else {
				assert.Equal(t, defaults[one.Name], printedConfig(t, "--config", path)[one.Name], "the variable")
			}
			if samples[2] == "0s" {
				assert.Equal(t, "0s", printedConfig(t, "--config", path, "--"+one.Name, "0s")[one.Name], "the flag")
				return
			}
			check(samples[2], "the flag", "--"+one.Name+"="+samples[2])
		})
	}
}

// A variable with a wrong name has no effect, so the server warns of it.
func TestServeStrayVariables(t *testing.T) {
	environment := []string{
		"TICKFLAKE_STROE=etcd://a", "TICKFLAKE_MAXBATCH=10", "HOME=/root", "TICKFLAKE_EMPTY=",
		"TICKFLAKE_STORE=etcd://a", "TICKFLAKE_CONFIG=x", "TICKFLAKE_SERVICE_HOST=10.0.0.1",
		"TICKFLAKE_PORT=tcp://10.0.0.1:6380", "TICKFLAKE_SERVERS_PORT_9380_TCP=tcp://10.0.0.1:9380",
	}
	assert.Equal(t, []string{
		"$TICKFLAKE_STROE is no variable of a setting: it has no effect",
		"$TICKFLAKE_MAXBATCH is no variable of a setting: it has no effect",
	}, newServer().strays(environment))
}

// The printed configuration is a file that means the same.
func TestServePrintConfigRoundTrip(t *testing.T) {
	text := "clients:\n  - {name: shop, token-hash: " + strings.Repeat("ab", 32) + ", rate: 0.5, burst: 7, ids: false, sequences: [orders, invoices-*]}\n  - {name: web, token-file: /run/token}\ncreate:\n  - {prefix: a-, mode: ordered, start: 0, max: 9, stride: 2, offset: 1}\n  - {prefix: b-, step: 1-2}\n"
	for name, samples := range serveSamples {
		if newServer().find(name).list {
			text += name + ": ['" + strings.Join(strings.Fields(samples[1]), "', '") + "']\n"
			continue
		}
		text += name + ": " + samples[0] + "\n"
	}
	first := tickflake("serve", "--print-config", "--config", configFile(t, text))
	require.Equal(t, result{0, first.out, ""}, first)
	second := tickflake("serve", "--print-config", "--config", configFile(t, first.out))
	assert.Equal(t, first, second)
	assert.Contains(t, first.out, "rate: 0.5")
	assert.Contains(t, first.out, "token-file: /run/token")
	var all map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(first.out), &all))
	assert.Len(t, all, len(serveSamples)+2, "all settings, the clients and the rules")
}

func TestServePrintConfigShowsNoSecret(t *testing.T) {
	for _, url := range []string{"postgres://ids:hunter2@db/ids", "nats://hunter2@h", "postgres://db/ids?password=hunter2"} {
		t.Setenv("TICKFLAKE_STORE", url)
		got := tickflake("serve", "--print-config")
		assert.Zero(t, got.code, got.err)
		assert.NotContains(t, got.out+got.err, "hunter2")
		assert.Regexp(t, "with a\\s+(# )?password\\s+(# )?that\\s+(# )?is\\s+(# )?not\\s+(# )?shown\n# store:\n", got.out)
	}
}

func TestServeRefusesBadConfiguration(t *testing.T) {
	const see = "\nsee 'tickflake serve --help'"
	const anywhere = "resp: 127.0.0.1:0\nhttp: off\ngrpc: off\n"
	client := func(fields string) string { return "clients:\n  - " + fields }
	state := t.TempDir()
	create := func(fields string) string { return "create:\n  - " + fields }
	for text, want := range map[string]string{
		"resp: 1.2.3.4":                   "FILE: resp: want HOST:PORT or off, got \"1.2.3.4\"",
		"nosuch: 1":                       "FILE: unknown setting \"nosuch\": 'tickflake serve --print-config' shows all",
		"config: x":                       "FILE: unknown setting \"config\"*",
		"http: off\nhttp: off":            "FILE: line 2: mapping key \"http\" already defined at line 1",
		"max-batch: many":                 "FILE: max-batch: want a whole number, got \"many\"",
		"max-batch: 0":                    "FILE: max-batch: want at least 1, got 0",
		anywhere + "max-batch: 1000001":   "FILE: max-batch: 1000001: want 1 to 1000000,*",
		"max-batch: [1]":                  "FILE: max-batch: want a value",
		"strategy:":                       "FILE: strategy: want a value",
		"open: yes":                       "FILE: open: want true or false, got \"yes\"",
		"idle-timeout: 10":                "FILE: idle-timeout: want a duration such as 500ms or 5s, got \"10\"",
		"read-timeout: 0s":                "FILE: read-timeout: want at least 1ms, got 0s",
		"layout: nosuch":                  "FILE: layout: *spec \"nosuch\"*",
		"strategy: nosuch":                "FILE: strategy: invalid strategy \"nosuch\"*",
		"node: -1":                        "FILE: node: want any, or a number from 0 on, got -1",
		"log-format: xml":                 "FILE: log-format: want text or json, got \"xml\"",
		create("{mode: ordered}"):         "FILE: create: of \"\": want a prefix",
		anywhere + create("{prefix: A}"):  "FILE: create: *\"A\" holds 'A'*",
		create("{prefix: a, mode: fast}"): "FILE: create: of \"a\": *\"fast\": want segmented or ordered",
		create("{prefix: a, start: x}"):   "FILE: line 2: cannot unmarshal*",
		anywhere + create("{prefix: a, stride: 2, offset: 5}"): "FILE: create: *",
		create("{prefix: a, mode: ordered, step: 5}"):          "FILE: create: of \"a\": an ordered sequence has no steps: leave step out",
		anywhere + create("{prefix: a, start: 9, max: 8}"):     "FILE: create: of \"a\": start 9 plus offset 0 is above the maximum 8: there is no number",
		create("{prefix: a, colour: red}"):                     "FILE: line 2: field colour not found*",
		"- a":                                                  "FILE: line 1: cannot unmarshal*",
		"resp: off\n---\nresp: off":                            "FILE: want one document",
		"resp: [":                                              "FILE: line 1: did not find expected node content",
		"clients: 5":                                           "FILE: line 1: cannot unmarshal*",
		"clients: []":                                          "FILE: clients: there are none: leave the list out to serve everybody",
		"clients:":                                             "FILE: clients: there are none: leave the list out to serve everybody",
		client("{name: a, token: x}"):                          "FILE: line 2: field token not found*",
		client("{name: a, rate: lots}"):                        "FILE: line 2: cannot unmarshal*",
		client("{name: a, name: b}"):                           "FILE: line 2: mapping key \"name\" already defined at line 2",
		"resp: off\nhttp: off\ngrpc: off":                      "--resp, --http and --grpc are all off: there is nothing to serve",
		"tls-cert: a.pem":                                      "TLS needs --tls-cert and --tls-key",
		anywhere + client("rate: 5"):                           "FILE: client : its name is \"\": *",
		anywhere + client("name: a"):                           "FILE: client a: want either a token or its hash*",
		anywhere + client("{name: a, token-hash: 'abc'}"):      "FILE: client a: its token-hash has 3 characters: want a SHA-256, *",
		anywhere + client("{name: a, token-hash: "+strings.Repeat("a1", 32)+", rate: .nan}"): "FILE: client a: its rate is NaN: *",
		anywhere + client("{name: a, token-hash: "+strings.Repeat("a1", 32)+", burst: 5}"):   "FILE: client a: its burst of 5 has no effect without a rate",
		"grpc: off\nresp: off\nhttp: 0.0.0.0:0":                                              "FILE: http: *there is no TLS: give a certificate, listen on loopback, or accept plaintext *",
		"plaintext: true\ngrpc: off\nresp: off\nhttp: 0.0.0.0:0":                             "FILE: http: *every program may ask: name clients, *or set open to serve every program",
	} {
		t.Run(text, func(t *testing.T) {
			path := configFile(t, text)
			got := tickflake("serve", "--config", path, "--store", state, "--timeout", "10s")
			assert.Equal(t, 2, got.code)
			assert.Empty(t, got.out)
			_, shown, _ := strings.Cut(strings.ReplaceAll("\n"+got.err, path, "FILE"), "\ntickflake: ") // after the log
			assert.Truef(t, matches(want+see+"\n", shown), "stderr is\n%s, want\n%s", got.err, want)
		})
	}
	for variable, want := range map[string]string{
		"TICKFLAKE_RESP":        "$TICKFLAKE_RESP: want HOST:PORT or off, got \"x\"",
		"TICKFLAKE_OPEN":        "$TICKFLAKE_OPEN: want true or false, got \"x\"",
		"TICKFLAKE_USE_WITHIN":  "$TICKFLAKE_USE_WITHIN: want a duration such as 500ms or 5s, got \"x\"",
		"TICKFLAKE_MAX_NUMBERS": "$TICKFLAKE_MAX_NUMBERS: want a whole number, got \"x\"",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "x")
			assert.Equal(t, result{2, "", "tickflake: " + want + see + "\n"}, tickflake("serve"))
		})
	}
	holders := tickflake("lease", "list", "--store", state)
	assert.Equal(t, 1, strings.Count(holders.out, "\n"), "a bad configuration claims no node number:\n%s%s", holders.out, holders.err)

	t.Setenv("TICKFLAKE_CONFIG", "/nosuch/file")
	assert.Equal(t, result{1, "", "tickflake: --config: open /nosuch/file: no such file or directory\n"}, tickflake("serve"))
}

// A file without any setting is one.
func TestServeEmptyFile(t *testing.T) {
	want := tickflake("serve", "--print-config")
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		assert.Equal(t, want, tickflake("serve", "--print-config", "--config", configFile(t, text)), text)
	}
}

func TestServeToken(t *testing.T) {
	got := tickflake("serve", "token")
	assert.Equal(t, result{0, got.out, ""}, got)
	words := strings.Fields(got.out)
	require.Len(t, words, 4)
	assert.GreaterOrEqual(t, len(words[1]), 26)
	sum := sha256.Sum256([]byte(words[1]))
	assert.Equal(t, hex.EncodeToString(sum[:]), words[3])
	assert.NotEqual(t, got.out, tickflake("serve", "token").out)
}

package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

// Every setting is a variable and a flag, and the flag goes before.
func TestSettings(t *testing.T) {
	rows := [][3]string{ // the name, what its variable says, and its flag
		{"resp", "localhost:2", "off"},
		{"http", "localhost:0", ":3"},
		{"grpc", "off", "127.0.0.1:0"},
		{"probes", "localhost:0", ":3"},
		{"vmclock", "off", "auto"},
		{"host", "b.example c.example", "d.example"},
		{"open", "false", "true"},
		{"plaintext", "true", "false"},
		{"store", "etcd://b:2379?namespace=x", "file:/nosuch/c"},
		{"timeout", "102ms", "103ms"},
		{"layout", "javascript", "time=41,node=6,sequence=16,tick=1ms,epoch=2026-01-01T00:00:00Z"},
		{"strategy", "borrow:1s", "exhausted=wait/behind=(exhausted=reject/behind=wait:1s)"},
		{"sequence-start", "random:9", "zero"},
		{"node", "any", "3"},
		{"window", "112ms", "113ms"},
		{"max-sequences", "122", "123"},
		{"max-observed", "132", "133"},
		{"tls-cert", "cert-b.pem", "cert-c.pem"},
		{"tls-key", "key-b.pem", "key-c.pem"},
		{"tls-client-ca", "client-ca-b.pem", "client-ca-c.pem"},
		{"max-batch", "142", "143"},
		{"max-numbers", "152", "153"},
		{"max-after", "162ms", "163ms"},
		{"max-connections", "172", "173"},
		{"request-timeout", "182ms", "183ms"},
		{"idle-timeout", "192ms", "193ms"},
		{"read-timeout", "202ms", "203ms"},
		{"drain-timeout", "212ms", "213ms"},
		{"unready-for", "222ms", "0s"},
		{"use-within", "232ms", "233ms"},
		{"log-format", "text", "json"},
		{"log-level", "warn", "error"},
		{"wait-for-clock", "112ms", "113ms"},
		{"clock-error", "112ms", "113ms"},
		{"resync", "3s", "4s"},
		{"fleet-check", "strict", "warn"},
		{"max-connection-age", "2h0m0s", "3h0m0s"},
	}
	var flags []string
	for _, row := range rows {
		t.Setenv(variable(row[0]), row[1])
		flags = append(flags, "--"+row[0]+"="+row[2])
	}
	for at, args := range [][]string{nil, flags} {
		s := &serving{Console: &command.Console{}}
		cmd := newServeOf(s)
		require.NoError(t, cmd.ParseFlags(args))
		require.NoError(t, s.fill())
		tried := make(map[string]bool)
		for _, row := range rows {
			tried[row[0]] = true
			require.True(t, s.has(row[0]), row[0])
			got := cmd.Flags().Lookup(row[0]).Value.String()
			if row[0] == "host" { // a list is words
				assert.Equal(t, strings.Fields(row[1+at]), s.config.Hosts)
				continue
			}
			assert.Equal(t, row[1+at], got, row[0])
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { assert.Equal(t, s.has(f.Name), tried[f.Name], f.Name) })
	}
}

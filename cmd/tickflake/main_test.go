package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/internal/command"
	"github.com/tickflake/tickflake/lease"
)

// A setting of each kind is a variable and a flag, and the flag goes before.
func TestSettings(t *testing.T) {
	rows := [][3]string{ // the name, what its variable says, and its flag
		{"resp", "localhost:2", "off"},
		{"host", "b.example c.example", "d.example"},
		{"open", "false", "true"},
		{"store", "etcd://b:2379?namespace=x", "file:/nosuch/c"},
		{"timeout", "102ms", "103ms"},
		{"layout", "javascript", "time=41,node=6,sequence=16,tick=1ms,epoch=2026-01-01T00:00:00Z"},
		{"strategy", "borrow:1s", "exhausted=wait/behind=(exhausted=reject/behind=wait:1s)"},
		{"sequence-start", "random:9", "zero"},
		{"node", "any", "3"},
		{"max-sequences", "122", "123"},
		{"max-numbers", "152", "153"},
		{"unready-for", "222ms", "0s"},
		{"tls-cert", "cert-b.pem", "cert-c.pem"},
		{"vmclock", "off", "auto"},
		{"log-format", "text", "json"},
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
		for _, row := range rows {
			require.True(t, s.has(row[0]), row[0])
			got := cmd.Flags().Lookup(row[0]).Value.String()
			if row[0] == "host" { // a list is words
				assert.Equal(t, strings.Fields(row[1+at]), s.config.Hosts)
				continue
			}
			assert.Equal(t, row[1+at], got, row[0])
		}
	}
}

// TestFarLimits: the list marks a limit that no right clock has left, and neither a reservation nor the fleet's floor.
func TestFarLimits(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		state lease.State
		until time.Duration
		want  string
	}{
		{lease.Released, 3 * time.Minute, "-"},
		{lease.Released, 3*time.Minute + 1, "was ahead?"},
		{lease.Expired, time.Hour, "was ahead?"},
		{lease.Reserved, time.Hour, "-"},
		{lease.Moved, time.Hour, "-"},
		{lease.Held, time.Hour, "±10s"},
	} {
		h := lease.Holding{State: test.state, Limit: now.Add(test.until), Window: time.Minute}
		row := holdingOf(h, now)
		assert.Equal(t, test.want, row.clock(), "%s %s", test.state, test.until)
		row.floor = h.Limit.Add(-3 * time.Minute)
		assert.NotEqual(t, "was ahead?", row.clock(), "%s %s", test.state, test.until)
	}
}

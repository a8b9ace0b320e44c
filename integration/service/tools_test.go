package service

import (
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/service/servicetest"
)

// tool runs redis-cli or redis-benchmark, and returns what it wrote to both its outputs.
func tool(t *testing.T, name string, port int, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program.FindFor(t, name, "redis-tools"), append([]string{"-p", strconv.Itoa(port)}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %q: %s", name, args, out)
	return strings.TrimSpace(string(out))
}

func TestRedisCLI(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	for _, protocol := range []string{"-2", "-3"} {
		id := tool(t, "redis-cli", server.port, "", protocol, "ID")
		lines := tool(t, "redis-cli", server.port, "PING\nID\nINCR tickets\nIDS 3\nSET tickets 1\nGET tickets\n", protocol)
		match := regexp.MustCompile(`(?s)^PONG\n(\d+)\n\d+\n(\d+)\n(\d+)\n(\d+)\nERR [^\n]*SET.*\n\d+$`).FindStringSubmatch(lines)
		require.NotNil(t, match, lines)
		ascend(t, append([]string{id}, match[1:]...)...)
		assert.NotContains(t, tool(t, "redis-cli", server.port, "", protocol, "DECODE", id), "ERR")
	}
	t.Run("pipe", func(t *testing.T) {
		out := tool(t, "redis-cli", server.port, strings.Repeat(servicetest.Command("INCR", "orders"), 500), "--pipe")
		assert.Contains(t, out, "errors: 0, replies: 500")
		assert.Equal(t, "501", tool(t, "redis-cli", server.port, "", "INCR", "orders"))
	})
	t.Run("commands", func(t *testing.T) {
		for _, args := range [][]string{{"INFO"}, {"ECHO", "hello"}, {"HELLO", "3"}, {"CLIENT", "ID"}} {
			assert.NotRegexp(t, `(?m)^(\(error\) )?ERR`, tool(t, "redis-cli", server.port, "", args...), args)
		}
	})
}

// redis-benchmark runs to its end, and takes as many numbers as it says.
func TestRedisBenchmark(t *testing.T) {
	t.Parallel()
	// The test "incr" counts keys of its own, so it needs a rule that creates them.
	server := serve(t, settings{"create": append(slices.Clip(rules), settings{"prefix": "counter"})})
	rate := regexp.MustCompile(`[\d.]+ requests per second`)
	for _, args := range [][]string{
		{"-t", "ping_mbulk"},
		{"-t", "ping_mbulk", "-P", "16"},
		{"-t", "incr", "-P", "16"},
		{"ID"},
		{"-P", "16", "ID"},
		{"-P", "16", "IDS", "10"},
		{"-3", "-P", "64", "ID"},
		{"INCR", "tickets"},
		{"-P", "16", "-r", "100", "INCRBY", "tickets", "2"},
	} {
		out := tool(t, "redis-benchmark", server.port, "", append([]string{"-q", "-n", "2000"}, args...)...)
		assert.Regexp(t, rate, out, args)
		assert.NotRegexp(t, `(?i)error`, out, args) // it warns that there is no CONFIG
	}
	assert.Equal(t, "6001", tool(t, "redis-cli", server.port, "", "INCR", "tickets"), "2,000 by INCR, and 4,000 by INCRBY")
}

// The alerts are rules of Prometheus, and fire and stay silent when their tests say so.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool := program.FindFor(t, "promtool", "prometheus")
	for _, args := range []string{"check rules alerts.yml service_alerts.yml", "test rules alerts_test.yml service_alerts_test.yml"} {
		out := program.RunFor(t, program.Config{Path: promtool, Args: strings.Fields(args), Dir: "../../oteltickflake/dashboard"})
		assert.Contains(t, out, "SUCCESS")
	}
}

package service

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/service/servicetest"
)

// redisCLI runs redis-cli, and returns what it wrote to both its outputs.
func redisCLI(t *testing.T, port int, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program.FindFor(t, "redis-cli", "redis-tools"), append([]string{"-p", strconv.Itoa(port)}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%q: %s", args, out)
	return strings.TrimSpace(string(out))
}

func TestRedisCLI(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	for _, protocol := range []string{"-2", "-3"} {
		id := redisCLI(t, server.port, "", protocol, "ID")
		lines := redisCLI(t, server.port, "PING\nID\nINCR tickets\nIDS 3\nSET tickets 1\nGET tickets\n", protocol)
		match := regexp.MustCompile(`(?s)^PONG\n(\d+)\n\d+\n(\d+)\n(\d+)\n(\d+)\nERR [^\n]*SET.*\n\d+$`).FindStringSubmatch(lines)
		require.NotNil(t, match, lines)
		ascend(t, append([]string{id}, match[1:]...)...)
		assert.NotContains(t, redisCLI(t, server.port, "", protocol, "DECODE", id), "ERR")
	}
	out := redisCLI(t, server.port, strings.Repeat(servicetest.Command("INCR", "orders"), 500), "--pipe")
	assert.Contains(t, out, "errors: 0, replies: 500")
	assert.Equal(t, "501", redisCLI(t, server.port, "", "INCR", "orders"))
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

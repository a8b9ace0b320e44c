package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../otel/README.md")
	require.NoError(t, err)
	return string(text)
}

// The commands of the README work, in their order, on other ports.
func TestReadmeCommands(t *testing.T) {
	servertest.Find(t, "prometheus", "prometheus")
	bash, _ := servertest.Find(t, "bash", "bash"), servertest.Find(t, "curl", "curl")
	address := func() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(servertest.Port(t))) }
	example, traced, prometheus := address(), address(), address()
	dir := copyDashboard(t, example)
	elsewhere := strings.NewReplacer(
		"otel/dashboard/check", "otel/dashboard/check", // not the copy
		"otel/dashboard/", dir+"/",
		"go run ./examples/metrics -traces -listen 127.0.0.1:9465", "go run ./examples/metrics -traces -listen "+traced,
		"go run ./examples/metrics", "go run ./examples/metrics -listen "+example,
		"127.0.0.1:9464", example, "127.0.0.1:9095", prometheus,
		"-benchtime 2s", "-benchtime 1x", // only that it runs
	)
	commands := regexp.MustCompile(`(?m)^    (\S.*)$`).FindAllStringSubmatch(readme(t), -1)
	require.Len(t, commands, 11)
	for _, found := range commands {
		command := found[1]
		config := servertest.Config{Path: bash, Args: []string{"-c", "set -o pipefail; " + elsewhere.Replace(command)}, Dir: "../..",
			Env: []string{"TMPDIR=" + dir}, Wait: 5 * time.Minute}
		switch {
		case strings.HasPrefix(command, "go get "):
			// The module is not there before a release.
		case command == "otel/dashboard/check":
			// A step of CI.
			assert.FileExists(t, filepath.Join("../..", command))
		case strings.Contains(command, "-traces"):
			config.Ready = ready("http://" + traced + "/metrics")
			p := servertest.Start(t, config)
			assert.Eventually(t, func() bool { return strings.Contains(p.Output(), `"Name": "tickflake.store swap"`) },
				time.Minute, 10*time.Millisecond, "output is read as it comes")
			require.NoError(t, p.Kill())
		case strings.HasPrefix(command, "go run "):
			config.Ready = ready("http://" + example + "/metrics")
			servertest.Start(t, config)
		case strings.HasPrefix(command, "prometheus "):
			config.Ready = ready("http://" + prometheus + "/-/ready")
			servertest.Start(t, config)
			until := time.Now().Add(time.Minute)
			for !answers(t, prometheus, "tickflake_lease_remaining_seconds") { // the 20 seconds
				require.True(t, time.Now().Before(until))
				time.Sleep(50 * time.Millisecond)
			}
		default:
			out := servertest.Run(t, config)
			assert.NotEmpty(t, strings.TrimSpace(out), command)
			t.Logf("%s\n%.300s", command, out)
		}
	}
}

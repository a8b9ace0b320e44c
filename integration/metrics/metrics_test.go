//go:build unix

// Package metrics opens what oteltickflake has for Prometheus and Grafana: its commands, dashboards and alerts.
package metrics

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/program"
)

const dashboards = "../../oteltickflake/dashboard"

// matches returns the first group of each match in a file of the dashboard.
func matches(t *testing.T, file, pattern string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dashboards, file))
	require.NoError(t, err)
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	require.NotEmpty(t, found)
	return found
}

// until waits until Prometheus has collected or evaluated enough.
func until(t *testing.T, enough func() bool, missing string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !enough(); time.Sleep(50 * time.Millisecond) {
		require.True(t, time.Now().Before(end), missing)
	}
}

// The commands of the README of oteltickflake work, in their order, on other ports, and what they show fits together.
func TestMetrics(t *testing.T) {
	program.FindFor(t, "prometheus", "prometheus")
	t.Parallel()
	bash, _ := program.FindFor(t, "bash", "bash"), program.FindFor(t, "curl", "curl")
	address := func() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(program.PortFor(t))) }
	example, traced, prometheus := address(), address(), address()

	// A copy of the dashboards, in which Prometheus collects often.
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(dashboards)))
	config, err := os.ReadFile(filepath.Join(dashboards, "prometheus.yml"))
	require.NoError(t, err)
	config = []byte(strings.NewReplacer("127.0.0.1:9464", example, " 15s", " 200ms").Replace(string(config)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), config, 0o600))
	elsewhere := strings.NewReplacer(
		"oteltickflake/dashboard/", dir+"/",
		"go run ./examples/metrics -traces -listen 127.0.0.1:9465", "go run ./examples/metrics -traces -listen "+traced,
		"go run ./examples/metrics", "go run ./examples/metrics -listen "+example,
		"127.0.0.1:9464", example, "127.0.0.1:9095", prometheus,
	)
	readme, err := os.ReadFile("../../oteltickflake/README.md")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^    (\S.*)$`).FindAllStringSubmatch(string(readme), -1)
	require.Len(t, commands, 6)
	for _, found := range commands {
		command := found[1]
		config := program.Config{Path: bash, Args: []string{"-c", "set -o pipefail; " + elsewhere.Replace(command)}, Dir: program.Top(),
			Env: []string{"TMPDIR=" + dir}, Wait: 5 * time.Minute}
		switch {
		case strings.HasPrefix(command, "go get "):
			// The module is not there before a release.
		case strings.Contains(command, "-traces"):
			config.Ready = program.Answers("http://" + traced + "/metrics")
			p := program.For(t, config)
			for _, span := range []string{"lock", "list", "swap"} {
				until(t, func() bool { return strings.Contains(p.Output(), `"Name": "tickflake.store `+span+`"`) }, "no span "+span)
			}
			require.NoError(t, p.Kill())
		case strings.HasPrefix(command, "go run "):
			config.Ready = program.Answers("http://" + example + "/metrics")
			program.For(t, config)
		case strings.HasPrefix(command, "prometheus "):
			config.Ready = program.Answers("http://" + prometheus + "/-/ready")
			program.For(t, config)
			checkAnswers(t, prometheus)
		default:
			assert.NotEmpty(t, strings.TrimSpace(program.RunFor(t, config)), command)
		}
	}
}

// ask calls Prometheus's API, and fails on warnings.
func ask(t *testing.T, server, path string, parameters url.Values, data any) {
	t.Helper()
	body, err := program.Get(t.Context(), "http://"+server+"/api/v1/"+path+"?"+parameters.Encode(), "")
	require.NoError(t, err)
	var answer struct {
		Status   string
		Warnings []string
		Data     json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Equal(t, "success", answer.Status, body)
	require.Empty(t, answer.Warnings)
	require.NoError(t, json.Unmarshal(answer.Data, data), body)
}

// checkAnswers waits until Prometheus has an answer to each query of the dashboard and has evaluated the
// alerts. The alerts name only metrics that there are, and each metric is in a panel or an alert.
func checkAnswers(t *testing.T, server string) {
	t.Helper()
	panels := matches(t, "grafana.json", `"expr": ("(?:[^"\\]|\\.)*")`)
	alerts := matches(t, "alerts.yml", `(?s) expr: (.*?)\n +(?:for|labels):`)
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", "example",
		"$namespace", "example|another", "$sequence", "orders|another")
	answers := func(query string) bool {
		var data struct{ Result []struct{ Value [2]any } }
		ask(t, server, "query", url.Values{"query": {variables.Replace(query)}}, &data)
		return slices.ContainsFunc(data.Result, func(r struct{ Value [2]any }) bool { return r.Value[1] != "NaN" })
	}
	for i, quoted := range panels {
		require.NoError(t, json.Unmarshal([]byte(quoted), &panels[i]))
		until(t, func() bool { return answers(panels[i]) }, "no answer to "+panels[i])
	}
	for _, variable := range matches(t, "grafana.json", `"query": "label_values\((.*)\)"`) {
		metric, label, _ := strings.Cut(variables.Replace(strings.ReplaceAll(variable, `\"`, `"`)), "}, ")
		var values []string
		ask(t, server, "label/"+label+"/values", url.Values{"match[]": {metric + "}"}}, &values)
		assert.Len(t, values, 1, variable)
	}

	var there, labels []string
	ours := url.Values{"match[]": {`{job="example",__name__=~"tickflake_.*"}`}}
	ask(t, server, "label/__name__/values", ours, &there)
	ask(t, server, "labels", ours, &labels)
	names := regexp.MustCompile(`\btickflake_\w+`)
	used := names.FindAllString(strings.Join(append(panels, alerts...), " "), -1)
	for _, name := range names.FindAllString(strings.Join(alerts, " "), -1) {
		assert.True(t, slices.Contains(append(labels, there...), name), "an alert has %s, which is no metric of the example", name)
	}
	for _, name := range there {
		assert.True(t, slices.Contains(used, name) || strings.HasSuffix(name, "_sum"), "no panel or alert has %s", name)
	}

	const clockNotSet = "TickflakeClockNotSet" // which may be true of this machine
	type rule struct{ Name, Health, State string }
	var data struct{ Groups []struct{ Rules []rule } }
	until(t, func() bool {
		ask(t, server, "rules", nil, &data)
		return !slices.ContainsFunc(data.Groups[0].Rules, func(r rule) bool { return r.Health != "ok" || r.State != "inactive" && r.Name != clockNotSet })
	}, "an alert is not evaluated, or not inactive")
	assert.Len(t, data.Groups[0].Rules, len(alerts))
}

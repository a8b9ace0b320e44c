package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/internal/rig/servertest"
)

const dashboardPath = "../../otel/dashboard"

// dashboard holds the fields that these tests check. otel/dashboard/check compares all fields
// with Grafana's own types.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct {
			Type  string
			Query json.RawMessage
		}
	}
}

// variables returns the queries that fill the lists of the variables.
func (d dashboard) variables(t *testing.T) (queries []string) {
	t.Helper()
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			var q struct{ Query string }
			require.NoError(t, json.Unmarshal(v.Query, &q))
			queries = append(queries, q.Query)
		}
	}
	require.NotEmpty(t, queries)
	return queries
}

// rules are the alerts.
type rules struct {
	Groups []struct {
		Rules []struct{ Alert, Expr string }
	}
}

func load(t *testing.T) (d dashboard, r rules) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dashboardPath, "grafana.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.Greater(t, len(d.Panels), 15)
	text, err = os.ReadFile(filepath.Join(dashboardPath, "alerts.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &r))
	require.Len(t, r.Groups, 1)
	require.NotEmpty(t, r.Groups[0].Rules)
	return d, r
}

// get returns the body of a page.
func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), err
}

// ready is a servertest.Config's Ready for a server that answers.
func ready(url string) func(context.Context) error {
	return func(ctx context.Context) error { _, err := get(ctx, url); return err }
}

// copyDashboard returns a copy of otel/dashboard in which Prometheus collects from address
// every second.
func copyDashboard(t *testing.T, address string) (dir string) {
	t.Helper()
	dir = servertest.Dir(t, "")
	require.NoError(t, os.CopyFS(dir, os.DirFS(dashboardPath)))
	config := filepath.Join(dir, "prometheus.yml")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	changed := strings.NewReplacer("127.0.0.1:9464", address, " 15s", " 1s").Replace(string(text))
	require.Equal(t, 1, strings.Count(changed, address))
	require.NoError(t, os.WriteFile(config, []byte(changed), 0o600))
	return dir
}

// The commands of the README work, in their order, on other ports. The dashboard, its variables
// and the alerts fit the metrics of the example, and Prometheus has an answer to each query.
func TestReadmeCommands(t *testing.T) {
	servertest.Find(t, "prometheus", "prometheus")
	bash, _ := servertest.Find(t, "bash", "bash"), servertest.Find(t, "curl", "curl")
	address := func() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(servertest.Port(t))) }
	example, traced, prometheus := address(), address(), address()
	dir := copyDashboard(t, example)
	elsewhere := strings.NewReplacer(
		"otel/dashboard/", dir+"/",
		"go run ./examples/metrics -traces -listen 127.0.0.1:9465", "go run ./examples/metrics -traces -listen "+traced,
		"go run ./examples/metrics", "go run ./examples/metrics -listen "+example,
		"127.0.0.1:9464", example, "127.0.0.1:9095", prometheus,
		"-benchtime 2s", "-benchtime 1x", // only that it runs
	)
	readme, err := os.ReadFile("../../otel/README.md")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^    (\S.*)$`).FindAllStringSubmatch(string(readme), -1)
	require.Len(t, commands, 10)
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
			for _, span := range []string{"lock", "list", "swap"} {
				assert.Eventually(t, func() bool { return strings.Contains(p.Output(), `"Name": "tickflake.store `+span+`"`) },
					time.Minute, 10*time.Millisecond, "output is read as it comes")
			}
			require.NoError(t, p.Kill())
		case strings.HasPrefix(command, "go run "):
			config.Ready = ready("http://" + example + "/metrics")
			servertest.Start(t, config)
			checkNames(t, example)
		case strings.HasPrefix(command, "prometheus "):
			config.Ready = ready("http://" + prometheus + "/-/ready")
			servertest.Start(t, config)
			checkAnswers(t, prometheus)
		default:
			out := servertest.Run(t, config)
			assert.NotEmpty(t, strings.TrimSpace(out), command)
			t.Logf("%s\n%.300s", command, out)
		}
	}
}

// checkNames makes sure that the dashboard and the alerts use only metrics that exist, and that
// every metric is on the dashboard, but for some that only alerts need.
func checkNames(t *testing.T, address string) {
	t.Helper()
	page, err := get(t.Context(), "http://"+address+"/metrics")
	require.NoError(t, err)
	metrics, labels := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, "{")
		metrics[name] = true
		for _, l := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(rest, -1) {
			labels[l[1]] = true
		}
	}
	shown, looked := map[string]bool{}, map[string]bool{}
	check := func(where, text string, in map[string]bool) {
		for _, name := range regexp.MustCompile(`\b(?:tickflake|otel|target)_\w+`).FindAllString(text, -1) {
			assert.True(t, metrics[name] || labels[name], "%s: %s is no metric of the example", where, name)
			in[name] = true
		}
	}
	d, alerts := load(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr, shown)
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				assert.True(t, labels[label[1]] || label[1] == "instance", "%s: the legend has %s", p.Title, label[1])
			}
		}
	}
	for _, query := range d.variables(t) {
		check("variable", query, looked)
	}
	for _, rule := range alerts.Groups[0].Rules {
		check(rule.Alert, rule.Expr, looked)
	}
	for name := range metrics {
		switch {
		case name == "target_info", strings.HasSuffix(name, "_sum"): // not ours, or of no use alone
		case name == "tickflake_generator_granted_seconds", strings.HasSuffix(name, "_store_went_back_total"):
			assert.True(t, looked[name], "no alert looks at %s", name)
		default:
			assert.True(t, shown[name], "no panel shows %s", name)
		}
	}
}

// ask calls Prometheus's API, and fails on warnings.
func ask(t *testing.T, server, path string, parameters url.Values, data any) {
	t.Helper()
	body, err := get(t.Context(), fmt.Sprintf("http://%s/api/v1/%s?%s", server, path, parameters.Encode()))
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

// answers reports whether Prometheus has a value for a query.
func answers(t *testing.T, server, query string) bool {
	t.Helper()
	var data struct {
		ResultType string
		Result     []struct{ Value [2]any }
	}
	ask(t, server, "query", url.Values{"query": {query}}, &data)
	require.Equal(t, "vector", data.ResultType, query)
	for _, r := range data.Result {
		if r.Value[1] != "NaN" {
			return true
		}
	}
	return false
}

// checkAnswers waits until Prometheus has an answer to every query of the dashboard, values for
// its variables, and has evaluated the alerts.
func checkAnswers(t *testing.T, server string) {
	t.Helper()
	d, alerts := load(t)
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", "example", "$namespace", "example|another", "$sequence", "orders|another")
	until := time.Now().Add(time.Minute)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			query := variables.Replace(target.Expr)
			for !answers(t, server, query) { // until it has collected enough
				require.True(t, time.Now().Before(until), "no answer to %s: %s", p.Title, query)
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	for _, query := range d.variables(t) {
		inner, ok := strings.CutPrefix(variables.Replace(query), "label_values(")
		require.True(t, ok, query)
		comma := strings.LastIndex(inner, ",")
		metric, label := inner[:comma], strings.Trim(inner[comma:], ", )")
		var values []string
		ask(t, server, "label/"+label+"/values", url.Values{"match[]": {metric}}, &values)
		want := "example"
		if label == "tickflake_sequence" {
			want = "orders"
		}
		assert.Equal(t, []string{want}, values, query)
	}

	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, State string }
		}
	}
	// Until each was evaluated and is inactive.
	for pending := true; pending; time.Sleep(50 * time.Millisecond) {
		ask(t, server, "rules", nil, &data)
		require.Len(t, data.Groups, 1)
		require.Len(t, data.Groups[0].Rules, len(alerts.Groups[0].Rules))
		pending = false
		for i, r := range data.Groups[0].Rules {
			assert.Equal(t, alerts.Groups[0].Rules[i].Alert, r.Name)
			pending = pending || r.Health == "unknown" || r.Health == "ok" && r.State != "inactive"
		}
		require.True(t, time.Now().Before(until), "%+v", data.Groups[0].Rules)
	}
	for _, r := range data.Groups[0].Rules {
		assert.Equal(t, "ok inactive", r.Health+" "+r.State, r.Name)
	}
}

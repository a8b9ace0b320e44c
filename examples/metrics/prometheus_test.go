package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/servertest"
)

// copyDashboard returns a copy of otel/dashboard in which Prometheus collects from address
// every second.
func copyDashboard(t *testing.T, address string) (dir string) {
	t.Helper()
	dir = servertest.Dir(t, "")
	files, err := os.ReadDir("../../otel/dashboard")
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join("../../otel/dashboard", f.Name()))
		require.NoError(t, err)
		if f.Name() == "prometheus.yml" {
			changed := strings.NewReplacer("127.0.0.1:9464", address, " 15s", " 1s").Replace(string(text))
			require.Equal(t, 1, strings.Count(changed, address))
			text = []byte(changed)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name()), text, 0o600))
	}
	return dir
}

// ready is a servertest.Config's Ready for a server that answers.
func ready(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, response.Status)
		}
		return nil
	}
}

// ask calls Prometheus's API, and fails on warnings.
func ask(t *testing.T, server, path string, parameters url.Values, data any) {
	t.Helper()
	body := get(t, fmt.Sprintf("http://%s/api/v1/%s?%s", server, path, parameters.Encode()))
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

// A Prometheus that collects from the example has an answer to every query of the
// dashboard, values for its variables, and the alerts.
func TestPrometheusAnswers(t *testing.T) {
	binary := servertest.Find(t, "prometheus", "prometheus")
	_, address := start(t)
	dir, server := copyDashboard(t, address), fmt.Sprintf("127.0.0.1:%d", servertest.Port(t))
	servertest.Start(t, servertest.Config{
		Path: binary,
		Args: []string{
			"--config.file=" + filepath.Join(dir, "prometheus.yml"),
			"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + server,
		},
		Ready: ready("http://" + server + "/-/ready"),
	})
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", "example", "$namespace", "example|another", "$sequence", "orders|another")
	until := time.Now().Add(time.Minute)
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			query := variables.Replace(target.Expr)
			for !answers(t, server, query) { // until it has collected enough
				require.True(t, time.Now().Before(until), "no answer to %s: %s", p.Title, query)
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	for _, query := range dashboardVariables(t) {
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
	want := readAlerts(t)
	// Until each was evaluated and is inactive.
	for pending := true; pending; time.Sleep(50 * time.Millisecond) {
		ask(t, server, "rules", nil, &data)
		require.Len(t, data.Groups, 1)
		require.Len(t, data.Groups[0].Rules, len(want))
		pending = false
		for i, r := range data.Groups[0].Rules {
			assert.Equal(t, want[i].Alert, r.Name)
			pending = pending || r.Health == "unknown" || r.Health == "ok" && r.State != "inactive"
		}
		require.True(t, time.Now().Before(until), "%+v", data.Groups[0].Rules)
	}
	for _, r := range data.Groups[0].Rules {
		assert.Equal(t, "ok", r.Health, r.Name)
		assert.Equal(t, "inactive", r.State, r.Name)
	}
}

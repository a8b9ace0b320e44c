package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("../../otel/dashboard/grafana.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	require.Greater(t, len(d.Panels), 15)
	return d
}

// The dashboard and the alerts use only metrics that exist, and every metric is on the
// dashboard, but for some that only alerts need.
func TestMetricsExist(t *testing.T) {
	_, address := start(t)
	metrics, labels := scrape(t, address)
	shown, looked := map[string]bool{}, map[string]bool{}
	check := func(where, text string, in map[string]bool) {
		for _, name := range regexp.MustCompile(`\b(?:tickflake|otel|target)_\w+`).FindAllString(text, -1) {
			assert.True(t, metrics[name] || labels[name], "%s: %s is no metric of the example", where, name)
			in[name] = true
		}
	}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			check(p.Title, target.Expr, shown)
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				assert.True(t, labels[label[1]] || label[1] == "instance", "%s: the legend has %s", p.Title, label[1])
			}
		}
	}
	for _, query := range dashboardVariables(t) {
		check("variable", query, looked)
	}
	for _, rule := range readAlerts(t) {
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

// dashboardVariables returns the queries that fill the lists of the variables.
func dashboardVariables(t *testing.T) (queries []string) {
	t.Helper()
	for _, v := range readDashboard(t).Templating.List {
		if v.Type == "query" {
			var q struct{ Query string }
			require.NoError(t, json.Unmarshal(v.Query, &q))
			queries = append(queries, q.Query)
		}
	}
	require.NotEmpty(t, queries)
	return queries
}

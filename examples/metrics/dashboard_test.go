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
	ID         any    `json:"id"`
	UID        string `json:"uid"`
	Panels     []panel
	Templating struct {
		List []struct{ Name, Type string }
	}
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Datasource  struct{ UID string }
	Targets     []struct {
		Expr, LegendFormat, RefID string
		Datasource                struct{ UID string }
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

var variable = regexp.MustCompile(`\$\{?(\w+)\}?`)

func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	assert.Nil(t, d.ID, "Grafana gives it one when it is imported")
	assert.Regexp(t, `^[a-zA-Z0-9_-]{1,40}$`, d.UID)

	known := []string{"__rate_interval"} // Grafana's own
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Empty(t, taken[at], "%s lies on another panel", p.Title)
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		assert.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		var refs []string
		for _, target := range p.Targets {
			assert.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
			assert.NotContains(t, refs, target.RefID, p.Title)
			refs = append(refs, target.RefID)
			chosen := `{job=~"$job", tickflake_namespace=~"$namespace"}`
			if strings.Contains(target.Expr, "tickflake_sequence_") {
				chosen = `{job=~"$job", tickflake_namespace=~"$namespace", tickflake_sequence=~"$sequence"}`
			}
			assert.Contains(t, target.Expr, chosen, p.Title)
			assert.Equal(t, strings.Count(target.Expr, "{"), strings.Count(target.Expr, chosen), "%s does not heed what was chosen", p.Title)
			for _, used := range variable.FindAllStringSubmatch(target.Expr, -1) {
				assert.Contains(t, known, used[1], p.Title)
			}
		}
	}
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
	text, err := os.ReadFile("../../otel/dashboard/grafana.json")
	require.NoError(t, err)
	var d struct {
		Templating struct {
			List []struct {
				Type  string
				Query json.RawMessage
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
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

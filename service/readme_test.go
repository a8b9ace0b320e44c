package service_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/service"
)

const dashboards = "../otel/dashboard/"

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

var ours = regexp.MustCompile(`\btickflake_service_[a-z_]+`)

// The table, the alerts and the dashboard name metrics and attributes that there are; and all
// that there are is in the table and on the dashboard or in an alert.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	a, s := newAuthority(t), newSecret(t)
	certificate, key := a.issue(t, "server", x509.ExtKeyUsageServerAuth, time.Hour)
	s.put(certificate, key, nil)
	r := start(t, func(c *service.Config) {
		var err error
		c.TLS, err = s.load(false, &logs{})
		require.NoError(t, err)
	})
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	_, text := call(t, client(t, &tls.Config{RootCAs: pool}), http.MethodGet, "https://"+r.http+"/livez", "")
	require.NotEmpty(t, text)
	_, text = call(t, client(t, &tls.Config{RootCAs: pool}), http.MethodGet, "https://"+r.http+"/metrics", "")
	var there []string
	for _, name := range ours.FindAllString(text, -1) {
		name = strings.TrimSuffix(name, "_sum")
		there = append(there, strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"))
	}
	slices.Sort(there)
	there = slices.Compact(there)
	require.Greater(t, len(there), 10)

	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| `([a-z_]+)` \\| ").FindAllStringSubmatch(readFile(t, "README.md"), -1) {
		listed = append(listed, row[2])
		assert.Contains(t, row[2], strings.ReplaceAll(row[1], ".", "_"))
	}
	listed = append(listed, "tickflake_service_code", "tickflake_service_protocol") // the attributes
	slices.Sort(listed)
	assert.Equal(t, there, listed)

	used := ours.FindAllString(readFile(t, dashboards+"service_alerts.yml")+readFile(t, dashboards+"service.json"), -1)
	for i, name := range used {
		used[i] = strings.TrimSuffix(name, "_bucket")
		assert.Contains(t, there, used[i])
	}
	for _, name := range there {
		assert.Contains(t, used, name)
	}
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations struct {
					Runbook string `yaml:"runbook_url"`
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, dashboards+"service_alerts.yml")), &file))
	var tests struct {
		Tests []struct {
			Cases []struct {
				Name   string `yaml:"alertname"`
				Expect []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, dashboards+"service_alerts_test.yml")), &tests))
	fires, silent := make(map[string]bool), make(map[string]bool)
	for _, test := range tests.Tests {
		for _, c := range test.Cases {
			fires[c.Name] = fires[c.Name] || len(c.Expect) > 0
			silent[c.Name] = silent[c.Name] || len(c.Expect) == 0
		}
	}
	readme := readFile(t, "README.md")
	for _, rule := range file.Groups[0].Rules {
		assert.True(t, fires[rule.Alert] && silent[rule.Alert], "%s needs a case in which it fires and one in which it does not", rule.Alert)
		_, anchor, _ := strings.Cut(rule.Annotations.Runbook, "service/README.md#")
		heading := "(?im)^## " + strings.ReplaceAll(regexp.QuoteMeta(anchor), "-", " ") + "\n\n`?.*" + rule.Alert
		assert.Regexp(t, heading, readme)
	}
	promtool := servertest.Find(t, "promtool", "prometheus")
	for _, args := range []string{"check rules service_alerts.yml", "test rules service_alerts_test.yml"} {
		out := servertest.Run(t, servertest.Config{Path: promtool, Args: strings.Fields(args), Dir: dashboards})
		assert.Contains(t, out, "SUCCESS")
	}
}

// Panels lie side by side, and have the data source that was chosen.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var d struct {
		ID     any
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct {
				Expr       string
				Datasource struct{ UID string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(readFile(t, dashboards+"service.json")), &d))
	assert.Nil(t, d.ID)
	require.NotEmpty(t, d.Panels)
	taken := make(map[[2]int]string)
	for _, p := range d.Panels {
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Empty(t, taken[at], "%s lies on another panel", p.Title)
				taken[at] = p.Title
			}
		}
		require.NotEmpty(t, p.Targets)
		for _, target := range p.Targets {
			assert.Equal(t, "${datasource}", target.Datasource.UID)
			assert.Contains(t, target.Expr, `job=~"$job"`)
		}
	}
}

package service_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service"
)

// The metrics tell of connections, of the generator, and of some sequences. TestRequests looks at those of requests.
func TestMetrics(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		r := start(t, pipe, func(c *service.Config) {
			c.MaxObserved = 1
			c.StoreName = "etcd://a:2379"
		})
		redis := r.caller(resp, "")
		for i, name := range []string{"orders", "orders2", "orders3"} {
			_, err := redis.Numbers(t.Context(), name, int64(5+i))
			require.NoError(t, err)
		}
		_, err := r.caller(rpc, "").IDs(t.Context(), 10)
		require.NoError(t, err)
		text := r.metrics("")
		for _, want := range []string{
			`service_items_total{.*protocol="resp"} 18`,
			`service_connections{.*protocol="resp"} 1`,
			`service_connections_opened_total{.*protocol="resp"} 1`,
			`service_connections_refused_total{.*protocol="resp"} 0`,
			`service_connections_limit{.*protocol="resp"} 16384`,
			`service_sequences 3`,
			`service_sequences_limit 10000`,
			`service_ready 1`,
			`generator_node 1`,
			`sequence_issued_total{.*tickflake_sequence="orders"} 5`,
			`sequence_issued_total{.*tickflake_sequence="\(others\)"} 13`,
		} {
			assert.True(t, regexp.MustCompile("(?m)^tickflake_"+want+"$").MatchString(text), want)
		}
		r.get(web, "/v1/ids/x")
		text = r.metrics("")
		for _, want := range []string{`code="ok",tickflake_service_protocol="grpc"} 1`, `code="ok",tickflake_service_protocol="http"} 1`, `code="bad_input",tickflake_service_protocol="http"} 1`} {
			assert.Contains(t, text, "tickflake_service_duration_seconds_count{tickflake_service_"+want)
		}
		assert.Contains(t, text, "go_goroutines ")
		assert.Contains(t, text, `target_info{service_name="tickflake",tickflake_store="etcd://a:2379"} 1`)
		assert.NotContains(t, text, "otel_scope_")
	})
}

// The README lists the metrics that there are, and the dashboard and the alerts use these and no
// others.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	read := func(path, pattern string) (found []string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			found = append(found, strings.TrimSuffix(match[1], "_bucket"))
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	r := start(t, listen, func(c *service.Config) {
		c.Clients = []service.Client{{Name: "shop", Tokens: []string{shop}, Metrics: true}}
	})
	r.metrics(shop) // the first request, of which the second has a duration
	var there []string
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (tickflake_(?:service|config)_\w+)`).FindAllStringSubmatch(r.metrics(shop), -1) {
		there = append(there, match[1])
	}
	shown := read("README.md", "(?m)^\\| `[a-z_.]+` \\| `([a-z_]+)`")
	assert.ElementsMatch(t, there, shown)
	shown = append(shown, "tickflake_service_client", "tickflake_service_code", "tickflake_service_protocol") // the attributes
	used := append(read("../oteltickflake/dashboard/service_alerts.yml", `\b((?:tickflake_service|tickflake_config)_[a-z_]+)`), read("../oteltickflake/dashboard/service.json", `\b((?:tickflake_service|tickflake_config)_[a-z_]+)`)...)
	slices.Sort(used)
	assert.ElementsMatch(t, shown, slices.Compact(used))
}

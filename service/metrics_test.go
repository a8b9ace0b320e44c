package service_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
)

// The metrics tell of connections, of the generator, and of some sequences. A provider of the
// caller gets them as well, until the server ends. servicetest looks at those of requests.
func TestMetrics(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		r := start(t, pipe, func(c *service.Config) {
			c.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
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
		assert.NotContains(t, text, "certificate_remaining", "there is no TLS")

		// A sequence that was deleted has no metrics, and those of a new one of its name begin anew.
		last, err := sequence.Delete(t.Context(), r.store, "orders")
		require.NoError(t, err)
		require.NoError(t, sequence.Create(t.Context(), r.store, "orders", last.Definition))
		_, err = redis.Numbers(t.Context(), "orders", 1000) // more than the rest of the segment
		require.NoError(t, err)
		assert.Contains(t, r.metrics(""), `tickflake_sequence="orders"} 1000`)

		for _, want := range []bool{true, false} {
			var other metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &other))
			for _, name := range []string{"tickflake.service.ready", "tickflake.generator.node", "tickflake.sequence.issued"} {
				assert.Equal(t, want, strings.Contains(fmt.Sprint(other), name), name)
			}
			r.stop()
			require.NoError(t, <-r.ended)
		}
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
	pair, err := tls.X509KeyPair(servicetest.NewAuthority(t).Issue(t, "server", servicetest.ForServers, time.Hour))
	require.NoError(t, err)
	reader := sdkmetric.NewManualReader()
	r := start(t, listen, func(c *service.Config) {
		c.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		c.TLS, c.Clients = &tls.Config{Certificates: []tls.Certificate{pair}}, []service.Client{{Name: "shop", Tokens: []string{token}}}
	})
	code, _ := r.get(probes, "/livez") // the server runs, and has answered a request
	require.Equal(t, http.StatusOK, code)
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	var there []string
	for _, scope := range all.ScopeMetrics {
		assert.Equal(t, "tickflake", scope.Scope.Name)
		for _, m := range scope.Metrics {
			if !regexp.MustCompile(`^tickflake\.(generator|lease|sequence|store)\.`).MatchString(m.Name) {
				there = append(there, m.Name)
			}
		}
	}
	assert.ElementsMatch(t, there, read("README.md", "(?m)^\\| `([a-z]+[.][a-z_.]+)` \\|"))
	shown := append(read("README.md", "(?m)^\\| `[a-z_.]+` \\| `([a-z_]+)`"), "tickflake_service_client", "tickflake_service_code", "tickflake_service_protocol") // the attributes
	used := append(read("../oteltickflake/dashboard/service_alerts.yml", `\b((?:tickflake_service|tickflake_config)_[a-z_]+)`), read("../oteltickflake/dashboard/service.json", `\b((?:tickflake_service|tickflake_config)_[a-z_]+)`)...)
	slices.Sort(used)
	assert.ElementsMatch(t, shown, slices.Compact(used))
}

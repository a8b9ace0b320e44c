package service_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	var config service.Config
	r := start(t, func(c *service.Config) {
		c.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
		c.MaxObserved = 1
		config = *c
	})
	redis, web := dial(t, r.resp), client(t, nil)
	for range 3 {
		redis.ask(t, "ID")
	}
	redis.ask(t, "INCRBY orders 5")
	redis.ask(t, "INCRBY orders2 7")
	redis.ask(t, "INCRBY orders3 8")
	redis.ask(t, "INCR nothing")
	redis.ask(t, "INCRBY orders 0")
	call(t, web, http.MethodPost, "http://"+r.http+"/v1/ids?n=20", "")
	call(t, web, http.MethodPost, "http://"+r.http+"/v1/ids?n=0", "")
	_, err := tickflakev1.NewTickflakeClient(dialGRPC(t, r.grpc)).Take(t.Context(), &tickflakev1.TakeRequest{Count: 10})
	require.NoError(t, err)

	scrape := func() string {
		code, text := call(t, web, http.MethodGet, "http://"+r.http+"/metrics", "")
		require.Equal(t, http.StatusOK, code)
		return text
	}
	text := scrape()
	for _, want := range []string{
		`service_requests_total{.*code="ok",.*protocol="resp"} 6`,
		`service_requests_total{.*code="not_found",.*protocol="resp"} 1`,
		`service_requests_total{.*code="bad_input",.*protocol="resp"} 1`,
		`service_requests_total{.*code="ok",.*protocol="grpc"} 1`,
		`service_requests_total{.*code="bad_input",.*protocol="http"} 1`,
		`service_items_total{.*protocol="resp"} 23`,
		`service_items_total{.*protocol="grpc"} 10`,
		`service_items_total{.*protocol="http"} 20`,
		`service_connections{.*protocol="resp"} 1`,
		`service_connections_opened_total{.*protocol="resp"} 1`,
		`service_connections_refused_total{.*protocol="resp"} 0`,
		`service_connections_limit{.*protocol="resp"} 16384`,
		`service_request_duration_seconds_count{.*protocol="resp"} [1-8]`,
		`service_request_duration_seconds_count{.*protocol="grpc"} 1`,
		`service_request_duration_seconds_count{.*protocol="http"} 2`,
		`service_sequences{.*} 3`,
		`service_sequences_limit{.*} 10000`,
		`service_ready{.*} 1`,
		`generator_node{.*} 1`,
		`sequence_issued_total{.*tickflake_sequence="orders"} 5`,
		`sequence_issued_total{.*tickflake_sequence="\(others\)"} 15`,
	} {
		assert.True(t, regexp.MustCompile("(?m)^tickflake_"+want+"$").MatchString(text), want)
	}
	assert.Contains(t, text, "go_goroutines ")
	assert.NotContains(t, text, "certificate_remaining", "there is no TLS")

	// A sequence that was deleted has no metrics, and those of a new one of its name begin anew.
	_, err = sequence.Delete(t.Context(), config.Store, "orders")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(redis.ask(t, "INCRBY orders 1000"), ":"), "more than the rest of the segment")
	assert.Regexp(t, `(?m)^tickflake_sequence_issued_total{.*tickflake_sequence="orders"} 1000$`, scrape())

	var other metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &other))
	assert.Contains(t, fmt.Sprint(other), "tickflake.service.requests")
	r.stop()
	require.NoError(t, <-r.ended)
	other = metricdata.ResourceMetrics{}
	require.NoError(t, reader.Collect(t.Context(), &other))
	for _, name := range []string{"tickflake.service.ready", "tickflake.generator.node", "tickflake.sequence.issued"} {
		assert.NotContains(t, fmt.Sprint(other), name, "the provider is free again")
	}
}

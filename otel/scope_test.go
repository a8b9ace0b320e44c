package oteltickflake

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease/leasetest"
)

// builtAs has the program's build information be info, or none for nil, until the test
// ends.
func builtAs(t *testing.T, info *debug.BuildInfo) {
	before := readBuildInfo
	t.Cleanup(func() { readBuildInfo = before })
	readBuildInfo = func() (*debug.BuildInfo, bool) { return info, info != nil }
}

func TestVersion(t *testing.T) {
	service := debug.Module{Path: "example.com/service", Version: "v9.9.9"}
	root := &debug.Module{Path: "github.com/tickflake/tickflake", Version: "v7.7.7"}
	fork := debug.Module{Path: "example.com/fork", Version: "v1.2.4"}
	for want, all := range map[string][]*debug.BuildInfo{
		"v1.2.3": {
			{Main: service, Deps: []*debug.Module{root, {Path: scope, Version: "v1.2.3"}}},
			{Main: debug.Module{Path: scope, Version: "v1.2.3"}, Deps: []*debug.Module{root}},
		},
		"v1.2.4": {{Main: service, Deps: []*debug.Module{{Path: scope, Version: "v1.2.3", Replace: &fork}}}},
		"": {
			nil, {},
			{Main: service, Deps: []*debug.Module{root}},
			{Main: service, Deps: []*debug.Module{{Path: scope, Version: "(devel)"}}},
			{Main: service, Deps: []*debug.Module{{Path: scope, Version: "v1.2.3", Replace: &debug.Module{Path: "../otel"}}}},
			{Main: debug.Module{Path: scope, Version: "(devel)"}},
		},
	} {
		for i, info := range all {
			builtAs(t, info)
			assert.Equal(t, want, version(), "%q, %d", want, i)
		}
	}
}

// Metrics and spans come with the version.
func TestScopeHasVersion(t *testing.T) {
	builtAs(t, &debug.BuildInfo{Deps: []*debug.Module{{Path: scope, Version: "v1.2.3"}}})
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	options := []Option{
		WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
	}
	_, err := Wrap(leasetest.NewMemory(), options...).List(t.Context())
	require.NoError(t, err)
	gen, err := generator.New()
	require.NoError(t, err)
	_, err = Observe(gen, options...)
	require.NoError(t, err)

	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	require.Len(t, all.ScopeMetrics, 1, "all of one version")
	assert.Len(t, all.ScopeMetrics[0].Metrics, 10)
	assert.Equal(t, scope, all.ScopeMetrics[0].Scope.Name)
	assert.Equal(t, "v1.2.3", all.ScopeMetrics[0].Scope.Version)
	require.Len(t, spans.Ended(), 1)
	assert.Equal(t, scope, spans.Ended()[0].InstrumentationScope().Name)
	assert.Equal(t, "v1.2.3", spans.Ended()[0].InstrumentationScope().Version)
}

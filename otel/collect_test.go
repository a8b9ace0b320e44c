package oteltickflake_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var noon = time.Date(2029, 6, 1, 12, 0, 0, 0, time.UTC)

// metrics collects what is reported to its provider.
type metrics struct {
	*sdkmetric.MeterProvider
	t      testing.TB
	reader *sdkmetric.ManualReader
}

func newMetrics(t testing.TB) metrics {
	reader := sdkmetric.NewManualReader()
	return metrics{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), t, reader}
}

// collect returns the metrics by their names.
func (m metrics) collect() map[string]metricdata.Metrics {
	m.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(m.t, m.reader.Collect(m.t.Context(), &all))
	byName := map[string]metricdata.Metrics{}
	for _, s := range all.ScopeMetrics {
		require.Equal(m.t, "github.com/tickflake/tickflake/otel", s.Scope.Name)
		for _, one := range s.Metrics {
			require.NotContains(m.t, byName, one.Name)
			byName[one.Name] = one
		}
	}
	return byName
}

// values returns the values of all metrics that have the attributes and no others.
// Histograms count as the number of what was recorded.
func (m metrics) values(attributes ...attribute.KeyValue) map[string]float64 {
	m.t.Helper()
	set, values := attribute.NewSet(attributes...), map[string]float64{}
	for name, one := range m.collect() {
		switch data := one.Data.(type) {
		case metricdata.Sum[int64]:
			assert.True(m.t, data.IsMonotonic, name)
			pick(values, name, set, data.DataPoints)
		case metricdata.Sum[float64]:
			assert.True(m.t, data.IsMonotonic, name)
			pick(values, name, set, data.DataPoints)
		case metricdata.Gauge[int64]:
			pick(values, name, set, data.DataPoints)
		case metricdata.Gauge[float64]:
			pick(values, name, set, data.DataPoints)
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				if p.Attributes.Equals(&set) {
					values[name] = float64(p.Count)
				}
			}
		default:
			m.t.Errorf("%s is a %T", name, data)
		}
	}
	return values
}

func pick[N int64 | float64](values map[string]float64, name string, set attribute.Set, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		if p.Attributes.Equals(&set) {
			values[name] = float64(p.Value)
		}
	}
}

// end unregisters, and sees to it that nothing is reported any longer.
func (m metrics) end(registration interface{ Unregister() error }) {
	m.t.Helper()
	require.NoError(m.t, registration.Unregister())
	require.Empty(m.t, m.values())
	require.NoError(m.t, registration.Unregister(), "again")
}

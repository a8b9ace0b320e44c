package oteltickflake_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	oteltickflake "github.com/tickflake/tickflake/otel"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores/storetest"
)

// The table of metrics in README.md has those that there are, with their kinds and
// units, and no others.
func TestReadmeListsTheMetrics(t *testing.T) {
	m := newMetrics(t)
	meters := oteltickflake.WithMeterProvider(m)
	keeper, err := lease.Claim(t.Context(), oteltickflake.Wrap(storetest.NewMemory(), meters))
	require.NoError(t, err)
	gen, err := generator.New(generator.WithLease(keeper))
	require.NoError(t, err)
	defer func() { assert.NoError(t, gen.Close()) }()
	_, err = oteltickflake.Observe(gen, meters)
	require.NoError(t, err)
	_, err = oteltickflake.CountIDs(gen, meters)
	require.NoError(t, err)
	_, err = oteltickflake.ObserveSequence(orders(t, storetest.NewMemory(), sequence.Definition{}), meters)
	require.NoError(t, err)
	there := map[string]string{}
	for name, one := range m.collect() {
		kind := "gauge"
		switch one.Data.(type) {
		case metricdata.Sum[int64], metricdata.Sum[float64]:
			kind = "counter"
		case metricdata.Histogram[float64]:
			kind = "histogram"
		}
		there[name] = fmt.Sprintf("%s, %s", kind, one.Unit)
		assert.NotEmpty(t, one.Description, name)
	}

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|[^|]+\\| ([a-z]+, [a-z1{}/]+) \\|").FindAllStringSubmatch(string(readme), -1) {
		listed[row[1]] = row[2]
	}
	assert.Equal(t, there, listed)
}

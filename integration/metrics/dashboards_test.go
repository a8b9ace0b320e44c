//go:build unix

package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/stretchr/testify/require"
)

// Grafana knows each field of the dashboards, and each has the type that Grafana gives it.
func TestDashboards(t *testing.T) {
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(stat.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	for _, file := range []string{"grafana.json", "service.json"} {
		text, err := os.ReadFile(filepath.Join(dashboards, file))
		require.NoError(t, err)
		//lint:ignore SA1019 the files have the schema of version 1, which every Grafana imports
		var d dashboard.Dashboard
		require.Empty(t, d.UnmarshalJSONStrict(text), file) // a list of errors
		var panels struct{ Panels []struct{ Type string } }
		require.NoError(t, json.Unmarshal(text, &panels))
		for _, p := range panels.Panels { // another type would not be looked at
			require.Contains(t, []string{"row", "stat", "timeseries"}, p.Type, file)
		}
	}
}

//go:build unix

package examples

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	sdk "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The dashboards have no field that Grafana's own types do not know, and no panel or query of a kind
// whose fields those types do not check.
func TestDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for _, file := range []string{"grafana.json", "service.json"} {
		text, err := os.ReadFile(filepath.Join(dashboard, file))
		require.NoError(t, err)
		var board sdk.Dashboard //lint:ignore SA1019 its successor is for another format of files
		err = board.UnmarshalJSONStrict(text)
		assert.Empty(t, err.Error(), file) // of no faults, it is an empty list and not nil
		assert.Subset(t, []string{"stat", "timeseries", "row", "prometheus", "datasource", "query"}, matches(t, file, `"type": "(\w+)"`), file)
	}
}

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tickflake/tickflake/internal/servertest"
)

// rule is an alert.
type rule struct {
	Alert, Expr string
	Annotations struct {
		Runbook string `yaml:"runbook_url"`
	}
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}

func readAlerts(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, "../../otel/dashboard/alerts.yml", &file)
	require.Len(t, file.Groups, 1)
	require.NotEmpty(t, file.Groups[0].Rules)
	return file.Groups[0].Rules
}

func TestAlertsWithPromtool(t *testing.T) {
	promtool := servertest.Find(t, "promtool", "prometheus")
	for _, args := range []string{"check rules alerts.yml", "check config prometheus.yml", "test rules alerts_test.yml"} {
		out := servertest.Run(t, servertest.Config{Path: promtool, Args: strings.Fields(args), Dir: "../../otel/dashboard"})
		assert.Contains(t, out, "SUCCESS")
	}
}

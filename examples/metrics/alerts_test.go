package main

import (
	"os"
	"regexp"
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

// The link of each alert leads to a heading.
func TestRunbooks(t *testing.T) {
	for _, r := range readAlerts(t) {
		path, ok := strings.CutPrefix(r.Annotations.Runbook, "https://github.com/tickflake/tickflake/blob/main/")
		require.True(t, ok, "%s: %q", r.Alert, r.Annotations.Runbook)
		path, anchor, _ := strings.Cut(path, "#")
		text, err := os.ReadFile("../../" + path)
		require.NoError(t, err)
		var anchors []string
		for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
			anchors = append(anchors, slug(heading[1]))
		}
		assert.Contains(t, anchors, anchor, "%s links to %s", r.Alert, path)
	}
}

// slug is the anchor of a heading.
func slug(heading string) string {
	kept := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(kept, " ", "-")
}

// Package docs tests that the project's pages agree with the code.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pages returns the Markdown files of the repository, by their paths from its root.
func pages(t *testing.T) []string {
	var found []string
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || path == "bench/out"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			found = append(found, path)
		}
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, found, "README.md")
	require.Contains(t, found, "docs/operate.md")
	return found
}

func read(t *testing.T, page string) string {
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
	require.NoError(t, err)
	return string(text)
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	indent  = regexp.MustCompile("(?m)^    .*$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	anchor  = regexp.MustCompile(`<a id="([^"]+)">`)
	runbook = regexp.MustCompile(`github\.com/tickflake/tickflake/blob/main/(\S+)`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns what can be linked to in a page, as GitHub makes it of headings.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := noSlug.ReplaceAllString(strings.ToLower(h[1]), "")
		found[strings.ReplaceAll(slug, " ", "-")] = true
	}
	for _, a := range anchor.FindAllStringSubmatch(text, -1) {
		found[a[1]] = true
	}
	return found
}

// follow checks that the page, and its part, of a link are there.
func follow(t *testing.T, page, target string) {
	path, part, _ := strings.Cut(target, "#")
	to := page
	if path != "" {
		to = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
		if _, err := os.Stat(filepath.Join("..", to)); !assert.NoError(t, err, "%s: link to %s", page, target) {
			return
		}
	}
	if part != "" && strings.HasSuffix(to, ".md") {
		assert.Contains(t, anchors(read(t, to)), part, "%s: link to %s", page, target)
	}
}

// TestLinks follows every link from one page of the repository to another file, and from an alert to its remedy.
func TestLinks(t *testing.T) {
	followed := 0
	for _, page := range pages(t) {
		text := read(t, page)
		plain := indent.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
		for _, l := range link.FindAllStringSubmatch(plain, -1) {
			target := l[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			followed++
			follow(t, page, target)
		}
	}
	assert.Greater(t, followed, 50)
	for _, alerts := range []string{"oteltickflake/dashboard/alerts.yml", "oteltickflake/dashboard/service_alerts.yml"} {
		urls := runbook.FindAllStringSubmatch(read(t, alerts), -1)
		assert.NotEmpty(t, urls, alerts)
		for _, url := range urls {
			follow(t, ".", url[1])
		}
	}
}

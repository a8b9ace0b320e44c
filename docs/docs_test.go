// Package docs tests that the project's pages agree with the code.
package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
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

// TestLinks follows every link from one page of the repository to another, to the doc of a package,
// and from an alert to its remedy.
func TestLinks(t *testing.T) {
	followed := 0
	for _, page := range pages(t) {
		text := read(t, page)
		plain := indent.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
		for _, l := range link.FindAllStringSubmatch(plain, -1) {
			target := l[1]
			if dir, ours := strings.CutPrefix(target, "https://pkg.go.dev/github.com/tickflake/tickflake/"); ours {
				dir, _, _ = strings.Cut(dir, "#")
				assert.DirExists(t, filepath.Join("..", dir), "%s: link to %s", page, target)
			}
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			followed++
			follow(t, page, target)
		}
	}
	assert.Greater(t, followed, 50)
	for _, alerts := range []string{"otel/dashboard/alerts.yml", "otel/dashboard/service_alerts.yml"} {
		urls := runbook.FindAllStringSubmatch(read(t, alerts), -1)
		assert.NotEmpty(t, urls, alerts)
		for _, url := range urls {
			follow(t, ".", url[1])
		}
	}
}

// TestReadmeProgram builds the functions of the README, as a user would have it.
func TestReadmeProgram(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(read(t, "README.md"), -1)
	require.Len(t, blocks, 3)
	program := `package main
import ("context"; "os/signal"; "syscall"; "time"; "github.com/tickflake/tickflake/generator"; "github.com/tickflake/tickflake/sequence"; "github.com/tickflake/tickflake/stores")
func main() { _ = run(func(context.Context, *generator.Generator) error { return nil }) }
` + blocks[0][1] + blocks[1][1] + blocks[2][1]
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "internal", "readme", "main.go"): source}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "program"), "./internal/readme")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

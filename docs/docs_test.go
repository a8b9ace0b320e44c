// Package docs tests that the project's pages agree with the code.
package docs

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/publicapi"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/directory"
	"github.com/tickflake/tickflake/stores/sqlstore"
)

// pages returns the Markdown files of the repository, by their paths from its root.
func pages(t *testing.T) []string {
	var found []string
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
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

// TestLinks follows every link from one page of the repository to another.
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
			path, part, _ := strings.Cut(target, "#")
			to := page
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
				_, err := os.Stat(filepath.Join("..", to))
				if !assert.NoError(t, err, "%s: link to %s", page, target) {
					continue
				}
			}
			if part != "" && strings.HasSuffix(to, ".md") {
				assert.Contains(t, anchors(read(t, to)), part, "%s: link to %s", page, target)
			}
		}
	}
	assert.Greater(t, followed, 50)
}

// exported returns the names that callers can meet of a package of the repository:
// error types, error values, and the fields of Stats.
func exported(t *testing.T, dir string) (failures, stats []string) {
	set := token.NewFileSet()
	var files []*ast.File
	paths, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	require.NoError(t, err)
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
			require.NoError(t, err)
			files = append(files, file)
		}
	}
	p, err := doc.NewFromFiles(set, files, dir)
	require.NoError(t, err)
	for _, v := range p.Vars {
		for _, name := range v.Names {
			if strings.HasPrefix(name, "Err") {
				failures = append(failures, p.Name+"."+name)
			}
		}
	}
	for _, typ := range p.Types {
		if strings.HasSuffix(typ.Name, "Error") {
			failures = append(failures, "*"+p.Name+"."+typ.Name)
		}
		if typ.Name != "Stats" {
			continue
		}
		for _, field := range typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
			for _, name := range field.Names {
				stats = append(stats, name.Name)
			}
		}
	}
	return failures, stats
}

// TestOperate checks that the page on operations names every error and every figure.
func TestOperate(t *testing.T) {
	page := read(t, "docs/operate.md")
	known := map[string]bool{}
	for _, dir := range []string{"snowflake", "strategies", "stores", "lease", "sequence", "generator", "stores/directory", "stores/etcd", "stores/nats", "stores/postgres", "stores/mysql", "stores/redis", "stores/sqlstore", "stores/zookeeper"} {
		failures, stats := exported(t, dir)
		if !strings.HasPrefix(dir, "stores/") { // an engine may have none of its own
			require.NotEmpty(t, failures, dir)
		}
		for _, name := range failures {
			known[strings.TrimPrefix(name, "*")] = true
			_, short, _ := strings.Cut(name, ".")
			if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, "`"+short+"`") {
				t.Errorf("docs/operate.md does not name %s", name)
			}
		}
		if dir == "generator" || dir == "lease" || dir == "sequence" {
			require.NotEmpty(t, stats, dir)
		}
		for _, name := range stats {
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/operate.md does not name the figure %s of %s", name, dir)
			}
		}
	}
	for _, other := range pages(t) {
		for _, named := range regexp.MustCompile("`\\*?(\\w+\\.(?:Err\\w+|\\w+Error))`").FindAllStringSubmatch(read(t, other), -1) {
			assert.True(t, known[named[1]], "%s names %s, which does not exist", other, named[1])
		}
	}
}

// TestKindsOfErrors checks the kinds in the tables of errors.
func TestKindsOfErrors(t *testing.T) {
	kinds := map[string]error{
		"generator.LeadError": &generator.LeadError{}, "generator.ContextError": &generator.ContextError{},
		"generator.EndOfTimeError": &generator.EndOfTimeError{}, "generator.ConfigError": &generator.ConfigError{},
		"lease.OptionError": &lease.OptionError{}, "lease.NoFreeNodeError": &lease.NoFreeNodeError{},
		"lease.LayoutMismatchError": &lease.LayoutMismatchError{}, "lease.ErrHeld": lease.ErrHeld, "lease.ErrSkew": lease.ErrSkew,
		"lease.ErrEndOfTime": lease.ErrEndOfTime, "lease.ErrLost": lease.ErrLost,
		"sequence.ExhaustedError": &sequence.ExhaustedError{}, "sequence.DefinitionError": &sequence.DefinitionError{},
		"sequence.OptionError": &sequence.OptionError{}, "sequence.ErrTimeout": sequence.ErrTimeout, "sequence.ErrNotFound": sequence.ErrNotFound,
		"sequence.ErrDeleted": sequence.ErrDeleted, "sequence.ErrLowered": sequence.ErrLowered,
		"stores.ErrForgets": stores.ErrForgets, "stores.ErrRefused": stores.ErrRefused, "stores.URLError": &stores.URLError{},
		"stores.ErrDamaged": stores.ErrDamaged, "stores.DamagedError": &stores.DamagedError{}, "stores.ErrWentBack": stores.ErrWentBack,
		"sqlstore.ErrNotPrimary": sqlstore.ErrNotPrimary, "sqlstore.ErrAutocommit": sqlstore.ErrAutocommit, "directory.ErrUnfit": directory.ErrUnfit,
	}
	_, page, _ := strings.Cut(read(t, "docs/operate.md"), "\n## Errors")
	page, _, _ = strings.Cut(page, "\n### The store is away")
	row := regexp.MustCompile("(?m)^\\| (`.*?) \\| (.*?) \\| ")
	named, checked := regexp.MustCompile(`\w+\.\w+`), map[string]bool{}
	for _, cells := range row.FindAllStringSubmatch(page, -1) {
		assert.Contains(t, []string{"passing", "refused", "loss", "that of its cause", "–"}, cells[2], cells[0])
		for _, name := range named.FindAllString(cells[1], -1) {
			if err, ok := kinds[name]; ok {
				assert.Equal(t, stores.KindOf(err).String(), cells[2], name)
				checked[name] = true
			}
		}
	}
	assert.Len(t, checked, len(kinds))
}

// TestBounds checks that the page on bounds names every call that takes a context.
func TestBounds(t *testing.T) {
	page := read(t, "docs/bounds.md")
	engines, err := filepath.Glob("../stores/*")
	require.NoError(t, err)
	dirs := append([]string{"../stores", "../lease", "../sequence", "../generator", "../otel", "../adapters/bwmarrin/snowflake", "../client"}, engines...)
	calls := 0
	for _, dir := range dirs {
		if filepath.Base(dir) == "storetest" { // for tests
			continue
		}
		for _, call := range publicapi.WithContext(t, dir) {
			calls++
			if !strings.Contains(page, "`"+call+"`") && !strings.Contains(page, "`"+filepath.Base(dir)+"."+call+"`") {
				t.Errorf("docs/bounds.md does not name %s of %s", call, dir)
			}
		}
	}
	assert.Greater(t, calls, 40)
}

// TestWindows computes the table of windows: a grant is extended when a third of it is
// used, and the number of a crashed process is free within two windows.
func TestWindows(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| (\d+[smh]) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$`)
	rows := row.FindAllStringSubmatch(read(t, "docs/operate.md"), -1)
	require.Len(t, rows, 3)
	for _, cells := range rows {
		window, err := time.ParseDuration(cells[1])
		require.NoError(t, err)
		want := []string{(window * 2 / 3).String(), window.String(), (2 * window).String(),
			strconv.FormatFloat(1024/(window/3).Seconds(), 'g', 4, 64)}
		assert.Equal(t, want, cells[2:], cells[1])
	}
	assert.Equal(t, lease.DefaultWindow.String(), rows[0][1])
}

// TestSequenceFigures computes the tables of steps and gaps of the page on sequences.
func TestSequenceFigures(t *testing.T) {
	page := strings.ReplaceAll(read(t, "docs/sequences.md"), ",", "")
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return n
	}
	outage := sequence.DefaultOutage.Seconds()
	steps := regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| ([\d.]+)/s \|$`).FindAllStringSubmatch(page, -1)
	require.Len(t, steps, 5)
	for _, cells := range steps {
		assert.Equal(t, 2*number(cells[1]), number(cells[2]), "the gap bound of %s", cells[0])
		assert.Equal(t, number(cells[1])/outage, number(cells[3]), "the rate of %s", cells[0])
	}
	rates := regexp.MustCompile(`(?m)^\| (\d+)/s \| (\d+) \| (\d+) \| one per (\d+) s \|$`).FindAllStringSubmatch(page, -1)
	require.Len(t, rates, 4)
	for _, cells := range rates {
		rate := number(cells[1])
		step := min(max(rate*outage, sequence.DefaultMinStep), sequence.DefaultMaxStep)
		assert.Equal(t, []float64{step, 2 * step, step / rate}, []float64{number(cells[2]), number(cells[3]), number(cells[4])}, cells[0])
	}
	assert.Contains(t, page, fmt.Sprintf("%d / %d is\n%d crashes", math.MaxInt32, 2*sequence.DefaultMaxStep, math.MaxInt32/(2*sequence.DefaultMaxStep)))
	assert.Contains(t, page, fmt.Sprintf("about 1000 + 1000/5 − 1 = %d invoices", 1000+1000/5-1))
}

// TestReadmeProgram builds the function of the README, as a user would have it.
func TestReadmeProgram(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindStringSubmatch(read(t, "README.md"))
	require.NotNil(t, block)
	program := `package main
import ("context"; "os/signal"; "syscall"; "time"; "github.com/tickflake/tickflake/generator")
func main() { _ = run(func(context.Context, *generator.Generator) error { return nil }) }
` + block[1]
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

package migrate_test

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	original = "github.com/bwmarrin/snowflake"
	adapter  = "github.com/tickflake/tickflake/adapters/bwmarrin/snowflake"
)

// run runs a command in dir and returns what it has printed. With -short it skips the test.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short runs no command")
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), out)
	return string(out)
}

func directoryOf(t *testing.T, pkg string) string {
	t.Helper()
	return strings.TrimSpace(run(t, source, "go", "list", "-f", "{{.Dir}}", pkg))
}

// The adapter passes the tests that the original package has for itself, from where the
// module cache keeps them.
func TestOriginalsTestsPass(t *testing.T) {
	theirs := filepath.Join(directoryOf(t, original), "snowflake_test.go")
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(directoryOf(t, adapter), "original_test.go"): theirs}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))

	var names []string
	parsed, err := parser.ParseFile(token.NewFileSet(), theirs, nil, 0)
	require.NoError(t, err)
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
			names = append(names, f.Name.Name)
		}
	}
	require.Greater(t, len(names), 10)
	out := run(t, source, "go", "test", "-overlay", file, "-v", "-run", "^("+strings.Join(names, "|")+")$", adapter)
	for _, name := range names {
		assert.Contains(t, out, "--- PASS: "+name+" ")
	}
}

// The adapter has every exported name of the original package, with the same type.
func TestNoNameIsMissing(t *testing.T) {
	want, have := exported(t, original), exported(t, adapter)
	require.Greater(t, len(want), 30)
	for name, declared := range want {
		assert.Equal(t, declared, have[name], name)
	}
}

// exported returns the types of the exported functions, methods and variables of a package, by
// name. Of a type that is a struct it is the name only.
func exported(t *testing.T, pkg string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, line := range strings.Fields(run(t, source, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", pkg)) {
		name, file, _ := strings.Cut(line, "=")
		files[name] = file
	}
	loaded, err := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }).Import(pkg)
	require.NoError(t, err)
	names := map[string]string{}
	add := func(name string, o types.Object) {
		if o.Exported() {
			names[name] = types.TypeString(o.Type(), func(*types.Package) string { return "" })
		}
	}
	for _, name := range loaded.Scope().Names() {
		o := loaded.Scope().Lookup(name)
		add(name, o)
		if named, ok := o.Type().(*types.Named); ok && o.Exported() {
			for m := range named.Methods() {
				add(name+"."+m.Name(), m)
			}
		}
	}
	return names
}

// The command of the guide changes a program over, which says the same afterwards.
func TestOneLineChange(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the command takes GNU tools")
	}
	dir := t.TempDir()
	before, err := os.ReadFile(filepath.Join(source, "testdata/program/main.go"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(source, "../go.sum"))
	require.NoError(t, err)
	root, err := filepath.Abs(filepath.Join(source, "../.."))
	require.NoError(t, err)
	mod := "module program\n\ngo 1.26.0\n\nrequire github.com/bwmarrin/snowflake v0.3.0\n\n" +
		"replace github.com/tickflake/tickflake => " + root + "\n"
	for name, text := range map[string]string{"main.go": string(before), "go.sum": string(sum), "go.mod": mod} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Setenv("GOWORK", "off")
	want := run(t, dir, "go", "run", ".")
	require.Contains(t, want, "true 7 true true\n")

	for _, match := range fence.FindAllStringSubmatch(guide(t, "bwmarrin.md"), -1) {
		if match[1] == "sh" {
			run(t, dir, "sh", "-euc", match[2])
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, "main.go"))
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(string(before), original, adapter, 1), string(after))
	assert.Equal(t, want, run(t, dir, "go", "run", "."))
}

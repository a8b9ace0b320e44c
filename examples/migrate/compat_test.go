package migrate_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
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

// run runs a command in dir and returns what it has printed.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
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

// exported returns how the exported functions, methods, types and variables of a package
// are declared, by name.
func exported(t *testing.T, pkg string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(directoryOf(t, pkg), "*.go"))
	require.NoError(t, err)
	names := map[string]string{}
	fileSet := token.NewFileSet()
	show := func(node any) string {
		var text bytes.Buffer
		require.NoError(t, printer.Fprint(&text, fileSet, node))
		return text.String()
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fileSet, path, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				receiver := ""
				if d.Recv != nil {
					receiver = show(d.Recv.List[0].Type) + "."
				}
				if d.Name.IsExported() {
					names[receiver+d.Name.Name] = show(signature(d.Type))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = "type"
						if _, isStruct := s.Type.(*ast.StructType); !isStruct {
							names[s.Name.Name] = show(s.Type)
						}
					case *ast.ValueSpec:
						for _, name := range s.Names {
							declared := ""
							if s.Type != nil {
								declared = show(s.Type)
							}
							names[name.Name] = d.Tok.String() + " " + declared
						}
					}
				}
			}
		}
	}
	for name := range names {
		if !ast.IsExported(name[strings.LastIndexByte(name, '.')+1:]) {
			delete(names, name)
		}
	}
	return names
}

// signature is a function's type without the names of its parameters.
func signature(f *ast.FuncType) *ast.FuncType {
	unnamed := func(list *ast.FieldList) *ast.FieldList {
		out := &ast.FieldList{}
		if list == nil {
			return out
		}
		for _, field := range list.List {
			for range max(1, len(field.Names)) {
				out.List = append(out.List, &ast.Field{Type: field.Type})
			}
		}
		return out
	}
	return &ast.FuncType{Params: unnamed(f.Params), Results: unnamed(f.Results)}
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

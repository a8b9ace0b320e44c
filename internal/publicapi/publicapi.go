// Package publicapi lists the exported calls of a package, for tests that a table has each
// of them.
package publicapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// WithContext returns the exported functions and methods of the package in dir that have a
// parameter of the type context.Context, such as "Claim" and "Keeper.Poll", in order.
func WithContext(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || !slices.ContainsFunc(f.Type.Params.List, isContext) {
				continue
			}
			if name, ok := receiver(f); ok {
				found = append(found, name+f.Name.Name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found) // a method of several systems
}

func isContext(param *ast.Field) bool {
	s, ok := param.Type.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Context" {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "context"
}

// receiver returns the type of a method with a dot, or nothing for a function. It reports
// false if the type is not exported.
func receiver(f *ast.FuncDecl) (string, bool) {
	if f.Recv == nil {
		return "", true
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	name, ok := typ.(*ast.Ident)
	if !ok || !name.IsExported() {
		return "", false
	}
	return name.Name + ".", true
}

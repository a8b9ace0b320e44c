// Command instrument writes the copies of monoclock and generator that the
// simulation runs: the same code, with the words of sync/atomic and sync.Mutex
// replaced by those of package seam, which let other callers in before every access. The production
// sources know nothing of it, and cost nothing for it.
//
// Run it by go generate in internal/simulation. What the simulation does not
// reach is left out of the copies, by name: a method is kept if anything that is
// kept mentions its name.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	module     = "github.com/tickflake/tickflake/"
	simulation = module + "internal/simulation/"
)

// packages are those that are copied.
var packages = []string{"monoclock", "generator"}

// roots are what the simulation uses, and the methods that only interfaces call.
var roots = []string{
	"New", "WithResync", "WithSource", "Now", "CaughtUp", "Drift",
	"WithLayout", "WithNode", "WithClock", "WithStrategy", "WithSequenceStart",
	"Next", "NextContext", "NextN", "Stream", "Stats", "Close", "ErrClosed",
	"Error", "Unwrap", "Is", "UnixNano",
	"WithLease", "Grant", "Tick", "Seal", "Node",
}

func main() {
	log.SetFlags(0)
	files, err := copies(filepath.Join("..", ".."))
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range packages {
		if err := os.RemoveAll(filepath.Join("core", name)); err != nil {
			log.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			log.Fatal(err)
		}
	}
}

// copies returns the files of the copies by their names below
// internal/simulation. The module is at root.
func copies(root string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range packages {
		sources, err := filepath.Glob(filepath.Join(root, name, "*.go"))
		if err != nil {
			return nil, err
		}
		var p pkg
		for _, source := range sources {
			if !strings.HasSuffix(source, "_test.go") {
				if err := p.read(source); err != nil {
					return nil, err
				}
			}
		}
		p.prune()
		for _, f := range p.files {
			text, err := p.write(f)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
			if text != nil {
				out[filepath.Join("core", name, f.name)] = text
			}
		}
	}
	return out, nil
}

type pkg struct {
	fset  token.FileSet
	files []*file
}

type file struct {
	name    string
	build   string            // its //go:build line, or empty
	pkg     string            // the package's name
	imports map[string]string // paths by name
	units   []*unit
}

// unit is a declaration, kept or left out as a whole.
type unit struct {
	decl     ast.Decl
	names    []string // what it declares
	receiver string   // of a method
	mentions map[string]bool
	kept     bool
}

func (p *pkg) read(source string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	// Without comments: the originals are the place to read them.
	parsed, err := parser.ParseFile(&p.fset, source, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{name: filepath.Base(source), pkg: parsed.Name.Name, imports: map[string]string{"seam": simulation + "seam"}}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "//go:build ") {
			f.build = line
		}
	}
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || spec.Name != nil {
			return fmt.Errorf("%s: cannot copy the import %s", source, spec.Path.Value)
		}
		local := path[strings.LastIndex(path, "/")+1:]
		if slices.Contains(packages, strings.TrimPrefix(path, module)) {
			path = simulation + "core/" + local
		}
		f.imports[local] = path
	}
	for _, decl := range parsed.Decls {
		f.add(decl)
	}
	p.files = append(p.files, f)
	return nil
}

// add splits a declaration into units. A list with iota stays whole.
func (f *file) add(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		u := &unit{decl: d, names: []string{d.Name.Name}}
		if d.Recv != nil {
			ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					u.receiver = id.Name
				}
				return true
			})
		}
		f.units = append(f.units, u)
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return
		}
		if !idents(d)["iota"] && len(d.Specs) > 1 {
			for _, spec := range d.Specs {
				f.add(&ast.GenDecl{Tok: d.Tok, TokPos: spec.Pos(), Specs: []ast.Spec{spec}})
			}
			return
		}
		u := &unit{decl: d}
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				u.names = append(u.names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					u.names = append(u.names, name.Name)
				}
			}
		}
		f.units = append(f.units, u)
	}
}

// swapped reports whether seam stands in for name.
func swapped(name string) bool {
	return strings.HasPrefix(name, "atomic.") || name == "sync.Mutex" || name == "time.Since" || name == "strategies.SequenceStart"
}

// idents swaps the names that seam stands in for, and returns all that n mentions.
func idents(n ast.Node) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && swapped(x.Name+"."+n.Sel.Name) {
				x.Name = "seam"
			}
		case *ast.Ident:
			found[n.Name] = true
		}
		return true
	})
	return found
}

// prune keeps what the roots reach.
func (p *pkg) prune() {
	reached := map[string]bool{}
	for _, name := range roots {
		reached[name] = true
	}
	for again := true; again; {
		again = false
		for _, f := range p.files {
			for _, u := range f.units {
				isReached := func(name string) bool { return reached[name] }
				if u.kept || !slices.ContainsFunc(u.names, isReached) || u.receiver != "" && !reached[u.receiver] {
					continue
				}
				u.kept, again = true, true
				u.mentions = idents(u.decl)
				maps.Copy(reached, u.mentions)
			}
		}
	}
}

// write returns f's text, or nil if nothing of it is kept.
func (p *pkg) write(f *file) ([]byte, error) {
	var body bytes.Buffer
	used := map[string]bool{}
	words := 0
	for _, u := range f.units {
		if !u.kept {
			continue
		}
		ast.Inspect(u.decl, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && f.imports[x.Name] != "" {
					used[f.imports[x.Name]] = true
					if isWord(s) {
						words++
					}
				}
			}
			return true
		})
		body.WriteString("\n")
		if err := printer.Fprint(&body, &p.fset, u.decl); err != nil {
			return nil, err
		}
		body.WriteString("\n")
		words -= p.observe(&body, u.decl)
	}
	if body.Len() == 0 {
		return nil, nil
	}
	if words != 0 {
		return nil, fmt.Errorf("%d atomic words or locks are not fields of a struct, and would not be seen", words)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "// Code generated by internal/simulation/instrument; DO NOT EDIT.\n\n%s\npackage %s\n\nimport (\n", f.build, f.pkg)
	for _, path := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&out, "%q\n", path)
	}
	fmt.Fprintf(&out, ")\n%s", body.Bytes())
	return format.Source(out.Bytes())
}

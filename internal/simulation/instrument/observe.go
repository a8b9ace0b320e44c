package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"slices"
)

// observe writes the method by which a struct with atomic words gives them to an
// observer, and returns the number of words that are its own.
func (p *pkg) observe(out io.Writer, decl ast.Decl) (words int) {
	name, fields := structOf(decl)
	if !p.hasWords(name) {
		return 0
	}
	fmt.Fprintf(out, "\n// Observe has o see every access to x's words from now on.\nfunc (x *%s) Observe(o seam.Observer) {\n", name)
	for _, field := range fields {
		for _, id := range field.Names {
			if isWord(field.Type) {
				words++
				word := id.Name
				if isLock(field.Type) {
					word = name // all locks are called mu
				}
				fmt.Fprintf(out, "x.%s.Observe(%q, o)\n", id.Name, word)
			} else if t, ok := field.Type.(*ast.Ident); ok && p.hasWords(t.Name) {
				fmt.Fprintf(out, "x.%s.Observe(o)\n", id.Name)
			}
		}
		if isWord(field.Type) {
			words -= len(field.Names) - 1 // one mention declared them all
		}
	}
	fmt.Fprintln(out, "}")
	return words
}

// hasWords reports whether name is a struct that holds atomic words.
func (p *pkg) hasWords(name string) bool {
	for _, f := range p.files {
		for _, u := range f.units {
			if n, fields := structOf(u.decl); u.kept && n == name && n != "" {
				return slices.ContainsFunc(fields, func(field *ast.Field) bool {
					t, ok := field.Type.(*ast.Ident)
					return isWord(field.Type) || ok && t.Name != name && p.hasWords(t.Name)
				})
			}
		}
	}
	return false
}

func isWord(t ast.Expr) bool {
	if generic, ok := t.(*ast.IndexExpr); ok { // a pointer, of whatever type
		t = generic.X
	}
	s, ok := t.(*ast.SelectorExpr)
	if !ok || s.Sel.Name == "SequenceStart" || s.Sel.Name == "Since" {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "seam"
}

func isLock(t ast.Expr) bool {
	s, ok := t.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Mutex"
}

// structOf returns the name and fields of a struct's declaration, or nothing.
func structOf(decl ast.Decl) (string, []*ast.Field) {
	if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
		spec := d.Specs[0].(*ast.TypeSpec)
		if s, ok := spec.Type.(*ast.StructType); ok {
			return spec.Name.Name, s.Fields.List
		}
	}
	return "", nil
}

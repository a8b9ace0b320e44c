// Command generate writes the code that ent generates from a schema. ent's own command would
// add more modules to go.mod.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: generate SCHEMA-DIRECTORY TARGET-DIRECTORY TARGET-PACKAGE")
		os.Exit(2)
	}
	target, err := filepath.Abs(os.Args[2])
	if err == nil {
		err = entc.Generate(os.Args[1], &gen.Config{Target: target, Package: os.Args[3]})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

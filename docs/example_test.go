package docs

import (
	"context"
	"log"
	"os"
	"testing"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/snowflake"
)

// The functions of this file hold code of pages that no other test has, so that it is compiled.

func Example_layout() {
	ctx := context.Background()
	gen, err := generator.Open(ctx, "ids", generator.WithLayout(snowflake.JavaScript()))
	if err != nil {
		log.Fatal(err)
	}
	if err := gen.Restored(ctx); err != nil {
		log.Fatal(err)
	}
}

var _ = script[snowflake.ID]

func script[ID ~int64](t *testing.T, mine generatortest.Subject[ID]) {
	text, err := os.ReadFile("failure.txt")
	if err != nil {
		t.Fatal(err)
	}
	script, err := generatortest.ParseScript(string(text))
	if err != nil {
		t.Fatal(err)
	}
	generatortest.TestScript(t, mine, script)
}

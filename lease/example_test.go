package lease_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/stores/directory"
)

// The body of this example stands in the README.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	store, err := directory.Open("ids") // a directory that outlasts the process
	if err != nil {
		log.Fatal(err)
	}
	keeper, err := lease.Claim(ctx, store)
	if err != nil {
		log.Fatal(err)
	}
	gen, err := generator.New(generator.WithLease(keeper))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close() // gives the node number back

	id, err := gen.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("decimal:", id)
	fmt.Println("base 32:", id.Base32())

	parts, err := gen.Layout().Decode(id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("issued: ", parts.Time.Format(time.RFC3339Nano), "on node", parts.Node)
}

func TestReadmeShowsTheExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, body, ok := strings.Cut(string(source), "func Example() {\n")
	require.True(t, ok)
	body, _, ok = strings.Cut(body, "\n}\n")
	require.True(t, ok)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	assert.Contains(t, string(readme), strings.ReplaceAll(body, "\n\t", "\n")[1:])

	t.Chdir(t.TempDir())
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	os.Stdout, err = os.Open(os.DevNull)
	require.NoError(t, err)
	Example() // its output differs from run to run
}

package web

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The document is valid, and has the routes of the server and no others. It says of each
// whether it needs a token.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := document()
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background()))
	var documented, served []string
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			line := method + " " + path
			if operation.Security != nil && len(*operation.Security) == 0 {
				line += " open"
			}
			documented = append(documented, line)
		}
	}
	for _, r := range newServer(t, setup{}).list() {
		line := strings.Replace(r.pattern, "{$}", "", 1)
		if r.open {
			line += " open"
		}
		served = append(served, line)
	}
	slices.Sort(documented)
	slices.Sort(served)
	assert.Equal(t, served, documented)
}

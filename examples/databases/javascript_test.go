package databases_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/databases/javascript"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/snowflake"
)

// node runs a script and reads the JSON that it prints into result.
func node(t *testing.T, result any, input any, script string, args ...string) {
	t.Helper()
	stdin, err := json.Marshal(input)
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), program.FindFor(t, "node", "nodejs"), append([]string{script}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	require.NoError(t, command.Run(), "%s", &stderr)
	require.NoError(t, json.Unmarshal(stdout.Bytes(), result), "%s", &stdout)
}

// A page gets an order and sends it back, and its ID keeps all its bits.
func TestStringsSurvive(t *testing.T) {
	gen := exampletest.IDs(t, generator.WithNode(1023))
	server := httptest.NewServer(javascript.Handler(gen))
	defer server.Close()
	before, err := gen.Next()
	require.NoError(t, err)
	var got struct {
		Type   string // of the ID
		Status int    // of the order that came back
		Body   string
	}
	node(t, &got, nil, "javascript/testdata/page.mjs", server.URL+"/orders?customer=ada", server.URL+"/orders")
	assert.Equal(t, "string", got.Type)
	require.Equal(t, http.StatusOK, got.Status, got.Body)
	var order javascript.Order
	require.NoError(t, json.Unmarshal([]byte(got.Body), &order))
	assert.Greater(t, order.ID, before)
	assert.Equal(t, "ada", order.Customer)
}

func TestDecode(t *testing.T) {
	layout := snowflake.Default()
	inside, outside := exampletest.Around(t, exampletest.Day)
	begin, err := layout.Min(layout.Epoch)
	require.NoError(t, err)
	end, err := layout.Max(layout.End().Add(-time.Millisecond))
	require.NoError(t, err)
	ids := append(append(inside, outside...), end, begin)
	var got struct {
		Decoded []struct {
			ID             snowflake.ID
			Time           time.Time
			Node, Sequence int64
		}
		Sorted []snowflake.ID
	}
	node(t, &got, map[string]any{"strings": ids}, "javascript/testdata/ids.mjs")
	require.Len(t, got.Decoded, len(ids))
	for i, id := range ids {
		want, err := layout.Decode(id)
		require.NoError(t, err)
		decoded := got.Decoded[i]
		assert.True(t, want.Time.Equal(decoded.Time), "%v: %v", want, decoded)
		assert.Equal(t, []int64{id.Int64(), want.Node, want.Sequence}, []int64{decoded.ID.Int64(), decoded.Node, decoded.Sequence})
	}
	slices.Sort(ids)
	assert.Equal(t, ids, got.Sorted)
}

package javascript_test

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
	"github.com/tickflake/tickflake/internal/rig/servertest"
	"github.com/tickflake/tickflake/snowflake"
)

// node runs a script and reads the JSON that it prints into result.
func node(t *testing.T, result any, input any, script string, args ...string) {
	t.Helper()
	stdin, err := json.Marshal(input)
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), servertest.Find(t, "node", "nodejs"), append([]string{script}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	require.NoError(t, command.Run(), "%s", &stderr)
	require.NoError(t, json.Unmarshal(stdout.Bytes(), result), "%s", &stdout)
}

// answered is what page.mjs prints: the type of the ID that it was given, and how the
// order was received that it sent back.
type answered struct {
	Type   string
	Status int
	Body   string
}

func TestStringsSurvive(t *testing.T) {
	gen := exampletest.IDs(t, generator.WithNode(1023))
	server := httptest.NewServer(javascript.Handler(gen))
	defer server.Close()
	before, err := gen.Next()
	require.NoError(t, err)
	var got answered
	node(t, &got, nil, "testdata/page.mjs", server.URL+"/orders?customer=ada", server.URL+"/orders")
	assert.Equal(t, "string", got.Type)
	require.Equal(t, http.StatusOK, got.Status, got.Body)
	var order javascript.Order
	require.NoError(t, json.Unmarshal([]byte(got.Body), &order))
	after, err := gen.Next()
	require.NoError(t, err)
	assert.True(t, before < order.ID && order.ID < after, "%v", order)
	assert.Equal(t, "ada", order.Customer)
}

func TestDecode(t *testing.T) {
	layout := snowflake.Default()
	var ids []snowflake.ID
	for _, instant := range []time.Time{layout.Epoch, layout.Epoch.Add(time.Millisecond), exampletest.Day,
		exampletest.Day.Add(123456789 * time.Millisecond), layout.End().Add(-time.Millisecond)} {
		for _, slot := range [][2]int64{{1023, 4095}, {0, 0}, {5, 1}, {1023, 0}, {0, 4095}} {
			id, err := layout.Compose(instant, slot[0], slot[1])
			require.NoError(t, err)
			ids = append(ids, id)
		}
	}
	var got struct {
		Decoded []struct {
			ID             snowflake.ID
			Time           time.Time
			Node, Sequence int64
		}
		Sorted []snowflake.ID
	}
	node(t, &got, map[string]any{"strings": ids}, "testdata/ids.mjs")
	require.Len(t, got.Decoded, len(ids))
	for i, id := range ids {
		want, err := layout.Decode(id)
		require.NoError(t, err)
		decoded := got.Decoded[i]
		assert.Equal(t, id, decoded.ID)
		assert.True(t, want.Time.Equal(decoded.Time), "%v: %v", want, decoded)
		assert.Equal(t, want.Node, decoded.Node)
		assert.Equal(t, want.Sequence, decoded.Sequence)
	}
	slices.Sort(ids)
	assert.Equal(t, ids, got.Sorted)
}

package databases_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/snowflake"
)

// The script takes IDs apart as the library does, and sorts their texts by time.
func TestDecode(t *testing.T) {
	layout := snowflake.Default()
	inside, outside := exampletest.Around(t, exampletest.Day)
	end, err := layout.Max(layout.End().Add(-time.Millisecond))
	require.NoError(t, err)
	ids := append(append(inside, outside...), end, 0)
	var got struct {
		Decoded []struct {
			ID             snowflake.ID
			Time           time.Time
			Node, Sequence int64
		}
		Sorted []snowflake.ID
	}
	texts, err := json.Marshal(map[string]any{"strings": ids})
	require.NoError(t, err)
	node := exec.CommandContext(t.Context(), program.FindFor(t, "node", "nodejs"), "javascript/testdata/ids.mjs")
	node.Stdin = bytes.NewReader(texts)
	out, err := node.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &got))
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

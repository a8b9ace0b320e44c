package powercut_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/powercut"
)

const writerEnv = "TICKFLAKE_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		if err := powercut.Write(context.Background(), dir, 3, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// A writer that is killed leaves in its directory everything that it was told.
func TestWriteAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ids")
	book := powercut.NewBook()
	for range 2 {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), writerEnv+"="+dir)
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		lines := bufio.NewScanner(out)
		want := book.IDs + 30
		for lines.Scan() {
			var f powercut.Fact
			require.NoError(t, json.Unmarshal(lines.Bytes(), &f))
			require.Empty(t, f.Failed)
			assert.Equal(t, 3, f.Writer)
			if book.Add(f); book.IDs >= want && book.Heard() == 1 {
				break
			}
		}
		require.NoError(t, c.Process.Kill())
		rest, err := io.ReadAll(out)
		require.NoError(t, err, "%s", rest)
		_ = c.Wait() // killed
		book.Cut()
		found, err := powercut.Read(t.Context(), dir)
		require.NoError(t, err)
		assert.Contains(t, found.Next, "ordered")
		assert.Contains(t, found.Next, "segmented")
		assert.NotEmpty(t, found.Limits)
		book.Compare(found)
	}
	assert.Empty(t, book.Broken)
	assert.NotZero(t, book.Writes)

	// The same book on what the disk could have lost.
	require.NoError(t, os.RemoveAll(dir))
	found, err := powercut.Read(t.Context(), dir)
	require.NoError(t, err)
	book.Compare(found)
	text := strings.Join(book.Broken, "\n")
	for _, want := range []string{"cell seq/ordered has version 0", "node number 0 has the limit 0", "sequence segmented begins at 0"} {
		assert.Contains(t, text, want)
	}
}

func TestReadDamaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ids")
	_, err := powercut.Read(t.Context(), dir)
	require.NoError(t, err)
	for _, name := range []string{"node+0000007.cell", "seq+orders.cell"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("tickflake-cell 1 crc"), 0o600))
	}
	found, err := powercut.Read(t.Context(), dir)
	require.NoError(t, err)
	book := powercut.NewBook()
	book.Compare(found)
	text := strings.Join(book.Broken, "\n")
	assert.Contains(t, text, "node/0000007")
	assert.Contains(t, text, "seq/orders")
}

func TestBook(t *testing.T) {
	book := powercut.NewBook()
	for _, f := range []powercut.Fact{
		{Writer: 1, Key: "node/0000002", Version: 7},
		{Writer: 2, Key: "node/0000002", Version: 5}, // of an earlier write, heard later
		{Writer: 1, ID: 100, Node: 2, Limit: 50},
		{Writer: 1, Sequence: "ordered", Number: 4},
		{Writer: 2, Sequence: "ordered", Number: 3},
		{Writer: 2, Failed: "no answer"},
	} {
		book.Add(f)
	}
	assert.Equal(t, 1, book.Heard(), "writer 2 has no ID yet")
	book.Cut()
	assert.Zero(t, book.Heard())
	good := powercut.Found{Versions: map[string]uint64{"node/0000002": 7, "seq/ordered": 1}, Limits: map[int64]int64{2: 50}, Next: map[string]int64{"ordered": 5}}
	book.Compare(good)
	assert.Empty(t, book.Broken)
	assert.Equal(t, [4]int{3, 0, 1, 2}, [4]int{book.IDs, book.Duplicates, book.Failed, book.Writes})
	assert.Equal(t, "no answer", book.FirstFailed)

	book.Compare(powercut.Found{Versions: map[string]uint64{"node/0000002": 6}, Limits: map[int64]int64{2: 49}, Next: map[string]int64{"ordered": 4}, Damaged: []string{"cell x"}})
	book.Add(powercut.Fact{Writer: 3, ID: 100, Node: 3, Limit: 60})
	book.Add(powercut.Fact{Writer: 3, Sequence: "ordered", Number: 4})
	book.Add(powercut.Fact{Writer: 3, Sequence: "segmented", Number: 4})
	assert.Equal(t, 2, book.Duplicates)
	assert.Equal(t, []string{
		"cut 1: damaged: cell x",
		"cut 1: cell node/0000002 has version 6, and 7 was acknowledged",
		"cut 1: node number 2 has the limit 49, and 50 was acknowledged",
		"cut 1: sequence ordered begins at 4, and 4 was issued",
		"cut 1: ID 100 was issued again, first before cut 1",
		"cut 1: number 4 of ordered was issued again, first before cut 1",
	}, book.Broken)
}

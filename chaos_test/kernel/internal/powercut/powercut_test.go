package powercut_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/powercut"
)

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

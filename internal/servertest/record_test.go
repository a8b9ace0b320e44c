package servertest

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/snowflake"
)

// An ID is in disorder if it is not above the largest one that was returned before its call.
func TestRecord(t *testing.T) {
	f := &Fleet{layout: snowflake.Default(), seen: map[snowflake.ID]*run{}}
	a, b := &run{fleet: f, number: 1}, &run{fleet: f, process: 1, number: 1}
	a.record(8, 0)
	a.record(7, 0) // a call at the same time
	b.record(5, 0)
	assert.Empty(t, f.report.Disorder)
	assert.EqualValues(t, 8, a.high)
	a.record(6, 8)
	assert.Equal(t, []string{"process 0 run 1 issued 6 after 8"}, f.report.Disorder)
	assert.Empty(t, f.report.Duplicates)
	b.record(8, 5)
	assert.Equal(t, "process 0 run 1", f.report.Duplicates[0].First)
	assert.Equal(t, "process 1 run 1", f.report.Duplicates[0].Second)
	assert.Equal(t, 5, f.report.Issued)
}

package subject

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
)

// A program of a user prints lines of any form.
func TestParse(t *testing.T) {
	for line, want := range map[string]check.ID{
		"12":           {Text: "12", Took: -1},
		"12 34 56":     {Text: "12", Took: 34, Lead: 56},
		"! 34 no disk": {Err: "no disk", Took: 34},
		"! no disk":    {Err: "no disk", Took: -1},
		"!":            {Err: "a call failed, without a text", Took: -1},
	} {
		assert.Equal(t, want, Parse(line), line)
	}
	for _, line := range []string{"12 34", "12 x 0", "1 2 3 4", "1 2 x", "1 -2 3", "an error text"} {
		assert.Contains(t, Parse(line).Err, "a line is neither", line)
	}
	for _, id := range []string{"", Held, Made, "!", "a b", "a\n", "\xbd"} {
		assert.Contains(t, Parse(string(appendLine(nil, id, time.Second, 0, nil))).Err, "is no word")
	}
}

package subject

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/check"
)

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
}

func TestAppendLineRefusesIDsThatAreNoWord(t *testing.T) {
	for _, id := range []string{"", Held, Made, "!", "a b", "a\n", "\xbd"} {
		line := string(appendLine(nil, id, time.Second, 0, nil))
		assert.Equal(t, 1, strings.Count(line, "\n"))
		assert.Contains(t, Parse(line).Err, "is no word")
	}
}

// A call is read as it was written, and no line breaks another.
func FuzzLine(f *testing.F) {
	f.Add("12", int64(34), int64(56), "")
	f.Add("", int64(0), int64(0), "no\ndisk\xff")
	f.Fuzz(func(t *testing.T, id string, took, lead int64, text string) {
		took = max(took, 0)
		var err error
		if text != "" {
			err = errors.New(text)
		}
		line := string(appendLine(nil, id, time.Duration(took), time.Duration(lead), err))
		assert.Equal(t, 1, strings.Count(line, "\n"))
		assert.True(t, strings.HasSuffix(line, "\n"))
		got := Parse(strings.TrimSpace(line))
		assert.EqualValues(t, took, got.Took)
		if err == nil && got.Err == "" {
			assert.Equal(t, check.ID{Text: id, Took: time.Duration(took), Lead: time.Duration(lead)}, got)
		}
		if err != nil {
			assert.NotEmpty(t, got.Err)
			assert.Empty(t, got.Text)
		}
		Parse(id + text) // any line can be read
	})
}

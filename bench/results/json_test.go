package results_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
)

// published is the report in the repository.
const published = "../../docs/results.json"

func specimen(t *testing.T) *results.Report {
	r, err := results.ReadFile(published)
	require.NoError(t, err)
	return r
}

func TestJSONRoundTrip(t *testing.T) {
	r := specimen(t)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	got, err := results.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, r, got)
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	text, err := os.ReadFile(published)
	require.NoError(t, err)
	whole := string(text)
	name := filepath.Join(t.TempDir(), "report.json")
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "damaged at byte 0 of 0"},
		{"cut off", whole[:len(whole)/2], "damaged at byte"},
		{"two", whole + whole, "damaged at byte"},
		{"not an object", "[]", "cannot unmarshal"},
		{"another file", `{"name": "x"}`, "schema 0"},
		{"newer", strings.Replace(whole, `"schema":2`, `"schema":3, "sections": 7`, 1), "has schema 3, and this program reads schema 2"},
		{"wrong type", strings.Replace(whole, `"seed":`, `"quick":"no","seed":`, 1), "cannot unmarshal"},
		{"a cell too few", strings.Replace(whole, `"columns":[`, `"columns":[{"id":"more","title":""},`, 1), "has 7 cells for 8 columns"},
		{"an ID that is a path", strings.Replace(whole, `"id":"ways"`, `"id":"../../x"`, 1), `ID "../../x"`},
		{"a chart of no column", strings.Replace(whole, `"columns":["ns"]`, `"columns":["nn"]`, 1), `no column "nn"`},
		{"no base", strings.Replace(whole, `"base":"Next"`, `"base":"Nixt"`, 1), `the row "Nixt" to compare with is missing`},
		{"a row twice", strings.Replace(whole, `"name":"rs/xid"`, `"name":"oklog/ulid"`, 1), "is there twice"},
		{"a section twice", strings.Replace(whole, `"id":"ways"`, `"id":"cost"`, 1), `section ID "cost" is used twice`},
	} {
		require.NoError(t, os.WriteFile(name, []byte(test.text), 0o600))
		_, err := results.ReadFile(name)
		assert.ErrorContains(t, err, name, test.name)
		assert.ErrorContains(t, err, test.want, test.name)
	}
	_, err = results.ReadFile(filepath.Join(t.TempDir(), "gone.json"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Cells may show parts of one slice: a sample that one drops stays for the others.
func TestClean(t *testing.T) {
	all := []float64{math.Inf(1), 1.23456789, 2, 3}
	s := results.Section{
		Tables:  []results.Table{{Rows: []results.Row{{Cells: []results.Cell{{Samples: all}, {Samples: all[2:]}, {Samples: all[:2]}}}}}},
		Targets: []results.Target{{Got: results.Cell{Samples: []float64{math.NaN()}}}},
	}
	assert.Equal(t, 3, s.Clean())
	cells := s.Tables[0].Rows[0].Cells
	assert.Equal(t, []float64{1.23457, 2, 3}, cells[0].Samples)
	assert.Equal(t, []float64{2, 3}, cells[1].Samples)
	assert.Equal(t, []float64{1.23457}, cells[2].Samples)
	assert.Empty(t, s.Targets[0].Got.Samples)
}

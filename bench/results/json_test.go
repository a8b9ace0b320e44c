package results_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/bench/results"
	"github.com/tickflake/tickflake/bench/results/internal/specimen"
)

func written(t testing.TB, r *results.Report) []byte {
	var text bytes.Buffer
	require.NoError(t, r.WriteJSON(&text))
	return text.Bytes()
}

func TestJSONRoundTrip(t *testing.T) {
	r := specimen.Report(1)
	name := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(name, written(t, r), 0o600))
	got, err := results.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, r, got)
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	whole := string(written(t, specimen.Report(1)))
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "damaged at byte 0 of 0"},
		{"cut off", whole[:len(whole)/2], "damaged at byte"},
		{"two", whole + whole, "damaged at byte"},
		{"not an object", "[]", "damaged"},
		{"another file", `{"name": "x"}`, "no schema"},
		{"newer", strings.Replace(whole, `"schema": 1`, `"schema": 2, "sections": 7`, 1), "its schema is 2, and this program reads schema 1"},
		{"wrong type", strings.Replace(whole, `"quick": false`, `"quick": "no"`, 1), "damaged"},
		{"a cell too few", strings.Replace(whole, `"id": "bits",`, `"id": "bits", "unit": "b"},{"id": "more",`, 1), "has 3 cells for 4 columns"},
		{"an ID that is a path", strings.Replace(whole, `"id": "stalls"`, `"id": "../../x"`, 1), `ID "../../x"`},
		{"an unknown mark", strings.Replace(whole, `"mark": "good"`, `"mark": "fine"`, 1), `"fine" is no mark`},
		{"an unknown kind", strings.Replace(whole, `"kind": "lines"`, `"kind": "pie"`, 1), `"pie" is no kind`},
		{"a chart of no table", strings.Replace(whole, `"table": "stalls"`, `"table": "stall"`, 1), `no table "stall"`},
		{"no base", strings.Replace(whole, `"base": "UUIDv4"`, `"base": "UUIDv5"`, 1), `no row "UUIDv5"`},
		{"a row twice", strings.Replace(whole, `"name": "rs/xid"`, `"name": "oklog/ulid"`, 1), "is there twice"},
		{"a section twice", strings.Replace(whole, `"id": "ways"`, `"id": "cost"`, 1), "section cost is there twice"},
	} {
		_, err := results.Read(strings.NewReader(test.text))
		var damage *results.ReadError
		if assert.ErrorAs(t, err, &damage, test.name) {
			assert.ErrorContains(t, err, test.want, test.name)
		}
	}
	_, err := results.Read(strings.NewReader(`{"schema": 9}`))
	var schema *results.SchemaError
	require.ErrorAs(t, err, &schema)
	assert.Equal(t, 9, schema.Got)

	name := filepath.Join(t.TempDir(), "gone.json")
	_, err = results.ReadFile(name)
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(name, []byte("{"), 0o600))
	_, err = results.ReadFile(name)
	assert.ErrorContains(t, err, name)
}

func TestWriteJSONRefusesWhatCannotBeRead(t *testing.T) {
	r := specimen.Report(1)
	r.Sections[0].Tables[0].Rows[3].Cells[0].Samples[2] = math.NaN()
	err := r.WriteJSON(new(bytes.Buffer))
	assert.ErrorContains(t, err, "sample 3 is NaN")

	r.Sections[0].Tables[0].Rows[4].Cells[0].Samples[1] = math.Inf(1)
	r.Sections[0].Repair()
	assert.Len(t, r.Sections[0].Tables[0].Rows[3].Cells[0].Samples, 9)
	assert.Contains(t, r.Sections[0].Notes, "Samples that were no numbers and are left out: 2.")
	assert.NoError(t, r.WriteJSON(new(bytes.Buffer)))
}

// Cells may show parts of one slice: what is left out of one stays where it is for
// the others.
func TestRepairOfSharedSamples(t *testing.T) {
	all := []float64{math.Inf(1), 1, 2, 3}
	s := results.Section{Tables: []results.Table{{Rows: []results.Row{{Cells: []results.Cell{
		{Samples: all}, {Samples: all[2:]}, {Samples: all[:2]},
	}}}}}}
	s.Repair()
	cells := s.Tables[0].Rows[0].Cells
	assert.Equal(t, []float64{1, 2, 3}, cells[0].Samples)
	assert.Equal(t, []float64{2, 3}, cells[1].Samples)
	assert.Equal(t, []float64{1}, cells[2].Samples)
	assert.Equal(t, []string{"Samples that were no numbers and are left out: 2."}, s.Notes)
}

// Whatever happens to a file, it is read as a report that holds together, or refused.
func TestReadDamaged(t *testing.T) {
	whole := written(t, specimen.Report(1))
	random := rand.New(rand.NewPCG(5, 6))
	refused := 0
	for range 400 {
		text := bytes.Clone(whole)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(text))
			switch random.IntN(3) {
			case 0:
				text[at] = byte(random.Uint32())
			case 1:
				text = text[:at+1]
			case 2:
				end := min(len(text), at+random.IntN(200))
				text = append(text[:at:at], text[end:]...)
			}
		}
		if readable(t, text) != nil {
			refused++
		}
	}
	assert.Positive(t, refused)
}

// readable reads a text, and checks what a report that was read holds to.
func readable(t testing.TB, text []byte) error {
	r, err := results.Read(bytes.NewReader(text))
	if err != nil {
		var damage *results.ReadError
		require.True(t, errors.As(err, &damage), "%T", err)
		return err
	}
	require.NoError(t, r.Check())
	again, err := results.Read(bytes.NewReader(written(t, r)))
	require.NoError(t, err)
	before, err := json.Marshal(r)
	require.NoError(t, err)
	after, err := json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, before, after)
	return nil
}

func FuzzRead(f *testing.F) {
	small := specimen.Report(1)
	small.Sections = small.Sections[5:7]
	f.Add(written(f, small))
	f.Add([]byte(`{"schema":1}`))
	f.Fuzz(func(t *testing.T, text []byte) { _ = readable(t, text) })
}

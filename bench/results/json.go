package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// A ReadError says why something is not a report.
type ReadError struct {
	Name string // of the file, if it has one
	Err  error
}

func (e *ReadError) Error() string {
	name := e.Name
	if name == "" {
		name = "report"
	}
	return fmt.Sprintf("%s: %v", name, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// A SchemaError is the report of another version of this program.
type SchemaError struct{ Got int }

func (e *SchemaError) Error() string {
	return fmt.Sprintf("its schema is %d, and this program reads schema %d: use the bench that wrote it, or run it again", e.Got, Schema)
}

// ReadFile reads a report that was written as JSON. It fails with a [*ReadError].
func ReadFile(name string) (*Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &ReadError{name, err}
	}
	defer f.Close()
	r, err := Read(f)
	var damage *ReadError
	if errors.As(err, &damage) {
		damage.Name = name
	}
	return r, err
}

// Read reads one report in JSON and checks it, as [Report.Check] does. It fails with a
// [*ReadError].
func Read(from io.Reader) (*Report, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, &ReadError{Err: err}
	}
	r, err := parse(text)
	if err != nil {
		return nil, &ReadError{Err: err}
	}
	return r, nil
}

func parse(text []byte) (*Report, error) {
	var version struct {
		Schema *int `json:"schema"`
	}
	// The version comes first: what else another one has need not fit the types here.
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, damaged(text, err)
	}
	if version.Schema == nil {
		return nil, errors.New("it has no schema, so it is no report.json of go run ./bench")
	}
	if *version.Schema != Schema {
		return nil, &SchemaError{*version.Schema}
	}
	r := new(Report)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, damaged(text, err)
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return r, nil
}

// damaged says where the text is no JSON of a report.
func damaged(text []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("damaged at byte %d of %d: %w", syntax.Offset, len(text), err)
	}
	return fmt.Errorf("damaged: %w", err)
}

// WriteJSON writes the report so that [Read] reads it. It fails on one that would not
// pass [Report.Check].
func (r *Report) WriteJSON(to io.Writer) error {
	if err := r.Check(); err != nil {
		return err
	}
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	return out.Encode(r)
}

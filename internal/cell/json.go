package cell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/stores"
)

// Format is the version of the format of cells. Cells of another format are not read. A field
// that is added needs no new format: older versions refuse a cell that has it.
const Format = 1

// Kept is how many names of earlier writes a cell keeps at most. One that is nearly as long as a
// value can be keeps fewer.
const Kept = 8

// names returns the names of the last writes of a cell, from the name of its write and those of
// the writes before that one: at most [Kept], the newest first. A cell that does not exist has none.
func names(write string, last []string) []string {
	if write == "" {
		return nil
	}
	return append([]string{write}, last[:min(len(last), Kept-1)]...)
}

// checkNames refuses a cell without the name of its write, or with more names than a cell keeps.
func checkNames(write string, last []string) error {
	switch {
	case write == "":
		return Damaged("it has no name of its write; it was edited by hand")
	case len(last) > Kept:
		return Damaged("it has the names of %d writes before its own, and a cell keeps %d; it was edited by hand", len(last), Kept)
	}
	return nil
}

// encode returns the value of a cell. It leaves out the oldest of the last names as far as the value
// would be longer than a store accepts.
func encode(cell any, last *[]string) []byte {
	for {
		text := EncodeJSON(cell)
		if len(text) <= stores.MaxValue || len(*last) == 0 {
			return text
		}
		*last = (*last)[:len(*last)-1]
	}
}

// Reads returns text, which is about to be written. With the tag invariants it panics unless that reads as the same.
func Reads[C any](text []byte, decode func([]byte) (C, error)) []byte {
	if word.Checked {
		if c, err := decode(text); err != nil || string(EncodeJSON(c)) != string(text) {
			panic(fmt.Sprintf("cell: %s does not read as it was written: %v", text, err))
		}
	}
	return text
}

// EncodeJSON returns the JSON of a value without white space.
func EncodeJSON(r any) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		return nil // never: strings and numbers always encode
	}
	return text
}

// DecodeJSON reads one JSON object of a format, with no unknown field and nothing after it: an
// older version of the library must not drop fields of a newer one. The error wraps
// [stores.ErrDamaged], and [ErrNewer] if a newer version wrote the object.
func DecodeJSON(value []byte, format int, r any) error {
	if len(value) == 0 {
		return Damaged("it is empty")
	}
	// Another format may have other fields, so it is read before them.
	var head struct {
		Format int `json:"format"`
	}
	if json.NewDecoder(bytes.NewReader(value)).Decode(&head) == nil && head.Format > format {
		return fmt.Errorf("%w: %w: its format is %d, and this process reads format %d: upgrade this process", stores.ErrDamaged, ErrNewer, head.Format, format)
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		if field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown && head.Format == format {
			return fmt.Errorf("%w: %w: its field %s is unknown to this process: upgrade this process", stores.ErrDamaged, ErrNewer, field)
		}
		return Damaged("it begins with %.20q and is no JSON object of a cell: %v", value, err)
	}
	if head.Format != format {
		return Damaged("its format is %d, want %d: it was edited by hand", head.Format, format)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Damaged("there is more text after its JSON object")
	}
	return nil
}

// ErrNewer is wrapped by the error for a cell that a newer version of the library wrote. Only
// that version may write the cell.
var ErrNewer = errors.New("a newer version of tickflake wrote it")

// Damaged returns an error that wraps [stores.ErrDamaged].
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", stores.ErrDamaged, fmt.Sprintf(format, args...))
}

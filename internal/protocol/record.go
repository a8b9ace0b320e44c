package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tickflake/tickflake/stores"
)

// Format is the version of the format of cells. Cells of another format are not read. A field
// that is added needs no new format: older versions refuse a cell that has it.
const Format = 1

// LayoutKey is the key of the cell that holds the fleet's layout.
const LayoutKey = "layout"

// MaxNodes is how many node numbers have keys. Their digits sort in the order of the
// numbers.
const MaxNodes = 1 << 22

// NodeKey is the key of the cell of a node number.
func NodeKey(node int64) string { return fmt.Sprintf("node/%07d", node) }

// NodeOf is the node number of a key, or false if the key is not that of a node number.
func NodeOf(key string) (node int64, ok bool) {
	digits, ok := strings.CutPrefix(key, "node/")
	n, err := strconv.ParseUint(digits, 10, 64)
	return int64(n), ok && err == nil && len(digits) == 7 && n < MaxNodes
}

// Record is the value of the cell of a node number.
type Record struct {
	Format int `json:"format"`
	// Holder is the token of the keeper that holds the cell, or empty if it was released.
	// Owner describes the holder to people.
	Holder string `json:"holder,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// Floor is where the last claim began: at or above the limit at that time.
	Floor uint64 `json:"floor,omitempty"`
	// Limit is the first tick that is granted to no process yet. Until is the same as a
	// text for people.
	Limit uint64 `json:"limit"`
	Until string `json:"until,omitempty"`
	// Window is the length of the holder's grants, in ticks.
	Window uint64 `json:"window,omitempty"`
	// Reserved: no process may claim the cell before Limit.
	Reserved bool `json:"reserved,omitempty"`
	// Write is the name of this write. It is new and random, so that the writer recognizes
	// its own write, and a copy of the writer's memory does not take it for its own.
	Write string `json:"write"`
	// Layout is the layout of all IDs of the fleet.
	Layout string `json:"layout"`
}

// LayoutRecord is the value of the cell of [LayoutKey].
type LayoutRecord struct {
	Format int    `json:"format"`
	Layout string `json:"layout"`
	Move   *Move  `json:"move,omitempty"`
}

// Move says that cells were moved from one store to another, or is nil.
type Move struct {
	// Export is the random name of the export that ended the cells of this store, or empty:
	// nothing is granted any more. To names the new store to people.
	Export string `json:"export,omitempty"`
	To     string `json:"to,omitempty"`
	// Import is the [Digest] of the document that the cells of this store began with, or empty.
	// Importing: they are not complete, and nothing is granted.
	Import    string `json:"import,omitempty"`
	Importing bool   `json:"importing,omitempty"`
}

// MaxTo is the length in bytes, in JSON, of the longest name of a store in a [Move].
const MaxTo = 300

// CheckTo returns an error unless to can name the new store in a [Move]. All processes that use
// the old store show the name in an error, so it is one line, and nothing in it can be a password.
func CheckTo(to string) error {
	n := len(EncodeJSON(to)) - len(`""`)
	switch {
	case to == "" || n > MaxTo:
		return fmt.Errorf("name of the new store of %d bytes: want 1 to %d", n, MaxTo)
	case strings.ContainsFunc(to, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }):
		return errors.New("name of the new store is not one line of printable characters")
	case strings.ContainsAny(to, "@=?#%") || strings.Contains(strings.ToLower(to), "passw"):
		return errors.New("name of the new store may show a password: want a URL without user, password and options, or a name without @ = ? # %")
	}
	return nil
}

// Digest returns the SHA-256 of the JSON of a document, in hex.
func Digest(document any) string {
	sum := sha256.Sum256(EncodeJSON(document))
	return hex.EncodeToString(sum[:])
}

// Exported reports whether the cells were moved to another store.
func (m *Move) Exported() bool { return m != nil && m.Export != "" }

// Where returns the name of the new store for an error or a list. A cell that was edited by hand
// may hold any text.
func (m *Move) Where() string {
	if CheckTo(m.To) != nil {
		return "another store"
	}
	return m.To
}

// ImportOf returns the digest of the document that the cells began with, or "".
func (m *Move) ImportOf() string {
	if m == nil {
		return ""
	}
	return m.Import
}

// ExportTo returns the move with a new export.
func (m *Move) ExportTo(to string) *Move { return &Move{Export: Token(), To: to, Import: m.ImportOf()} }

// Encode returns the value of a cell.
func (r Record) Encode() []byte {
	r.Format = Format
	return EncodeJSON(r)
}

// Encode returns the value of the cell.
func (r LayoutRecord) Encode() []byte {
	r.Format = Format
	return EncodeJSON(r)
}

// EncodeJSON returns the value of a cell.
func EncodeJSON(r any) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		return nil // never: strings and numbers always encode
	}
	return text
}

// maxWindow bounds the window of a record that was read, so that sums do not overflow.
const maxWindow = 1 << 40

// Decode reads the value of a cell of a node number. The error wraps [stores.ErrDamaged].
func Decode(value []byte) (Record, error) {
	var r Record
	if err := DecodeJSON(value, Format, &r); err != nil {
		return Record{}, err
	}
	if r.Write == "" || r.Layout == "" {
		return Record{}, Damaged("it has no name of its write, or no layout")
	}
	r.Window = min(r.Window, maxWindow)
	return r, nil
}

// DecodeLayout reads the value of the cell of [LayoutKey]. The error wraps
// [stores.ErrDamaged].
func DecodeLayout(value []byte) (r LayoutRecord, err error) {
	err = DecodeJSON(value, Format, &r)
	return r, err
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

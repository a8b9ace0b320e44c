package cell

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
func (m *Move) Where() string { return Where(m.To) }

// Where returns the name of a store that cells were moved to, for an error or a list. A cell that was edited
// by hand may hold any text.
func Where(to string) string {
	if CheckTo(to) != nil {
		return "another store"
	}
	return to
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

package powercut

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
)

// Book has the facts of all writers, over all power cuts of a disk. It is not safe for use by
// several goroutines at once.
type Book struct {
	IDs, Duplicates, Failed int    // IDs and numbers; those that were issued before; failed calls
	Writes                  int    // acknowledged writes of cells
	FirstFailed             string // text of the first failed call

	least  map[string]int64 // the version that each cell must have
	issued check.Ledger     // of IDs and numbers, by cuts
	cut    int
}

// NewBook returns a book without facts.
func NewBook() *Book { return &Book{least: map[string]int64{}, issued: check.Ledger{}} }

// Clone returns a copy.
func (b *Book) Clone() *Book {
	c := *b
	c.least, c.issued = maps.Clone(b.least), maps.Clone(b.issued)
	return &c
}

// Add notes facts. It returns findings of what was issued again.
func (b *Book) Add(facts ...Fact) (broken []string) {
	for _, f := range facts {
		switch {
		case f.Failed != "":
			b.Failed++
			b.FirstFailed = cmp.Or(b.FirstFailed, f.Failed)
		case f.Issued == "":
			b.least[f.Cell] = max(b.least[f.Cell], f.Version)
			b.Writes++
		default:
			b.IDs++
			if before, twice := b.issued.Add(f.Issued, check.Sight{By: b.cut}); twice {
				b.Duplicates++
				broken = append(broken, fmt.Sprintf("cut %d: %s was issued again, last before cut %d", b.cut, f.Issued, before.By+1))
			}
		}
	}
	return broken
}

// Cut notes that the power was cut.
func (b *Book) Cut() { b.cut++ }

// Compare compares what a directory has after a cut with the facts, and returns its findings.
func (b *Book) Compare(f Found) (broken []string) {
	for _, text := range f.Damaged {
		broken = append(broken, fmt.Sprintf("cut %d: damaged: %s", b.cut, text))
	}
	for key, least := range b.least {
		if f.Has[key] < least {
			broken = append(broken, fmt.Sprintf("cut %d: the version of cell %s is %d, and %d was acknowledged", b.cut, key, f.Has[key], least))
		}
	}
	return broken[:min(len(broken), 20)] // one lost file system breaks a promise of every cell
}

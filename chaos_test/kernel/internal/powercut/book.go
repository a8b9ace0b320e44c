package powercut

import "fmt"

// maxBroken bounds the list of a book: one lost file system breaks a promise of every cell.
const maxBroken = 20

// Book has the facts of all writers, over all cuts. It is not safe for use by several
// goroutines at once.
type Book struct {
	IDs, Duplicates, Failed int      // IDs and numbers; those that were issued before; failed calls
	Writes                  int      // acknowledged writes of cells
	Broken                  []string // promises that did not hold
	FirstFailed             string   // text of the first failed call

	versions map[string]uint64
	limits   map[int64]int64
	next     map[string]int64 // the least Next that each sequence may have
	issued   map[string]int   // by ID or name and number, the cut that it was issued before
	cut      int
	heard    map[int]bool // writers that have issued an ID since the last cut
}

// NewBook returns a book without facts.
func NewBook() *Book {
	return &Book{versions: map[string]uint64{}, limits: map[int64]int64{}, next: map[string]int64{}, issued: map[string]int{}, heard: map[int]bool{}}
}

func (b *Book) broken(format string, args ...any) {
	if len(b.Broken) < maxBroken {
		b.Broken = append(b.Broken, fmt.Sprintf("cut %d: ", b.cut)+fmt.Sprintf(format, args...))
	}
}

// Break notes a finding.
func (b *Book) Break(text string) { b.broken("%s", text) }

// Add notes a fact.
func (b *Book) Add(f Fact) {
	switch {
	case f.Failed != "":
		b.Failed++
		if b.FirstFailed == "" {
			b.FirstFailed = f.Failed
		}
	case f.Key != "":
		b.Writes++
		b.versions[f.Key] = max(b.versions[f.Key], f.Version)
	case f.Sequence != "":
		b.issue(fmt.Sprintf("number %d of %s", f.Number, f.Sequence))
		b.next[f.Sequence] = max(b.next[f.Sequence], f.Number+1)
	default:
		b.issue(fmt.Sprintf("ID %d", f.ID))
		b.limits[f.Node] = max(b.limits[f.Node], f.Limit)
		b.heard[f.Writer] = true
	}
}

func (b *Book) issue(what string) {
	b.IDs++
	if before, ok := b.issued[what]; ok {
		b.Duplicates++
		b.broken("%s was issued again, first before cut %d", what, before+1)
		return
	}
	b.issued[what] = b.cut
}

// Heard returns how many writers have issued an ID since the last cut.
func (b *Book) Heard() int { return len(b.heard) }

// Cut notes that the power was cut.
func (b *Book) Cut() {
	b.cut++
	clear(b.heard)
}

// Compare compares what a directory has after a cut with the facts.
func (b *Book) Compare(f Found) {
	for _, text := range f.Damaged {
		b.broken("damaged: %s", text)
	}
	for key, version := range b.versions {
		if f.Versions[key] < version {
			b.broken("cell %s has version %d, and %d was acknowledged", key, f.Versions[key], version)
		}
	}
	for node, limit := range b.limits {
		if f.Limits[node] < limit {
			b.broken("node number %d has the limit %d, and %d was acknowledged", node, f.Limits[node], limit)
		}
	}
	for name, next := range b.next {
		if f.Next[name] < next {
			b.broken("sequence %s begins at %d, and %d was issued", name, f.Next[name], next-1)
		}
	}
}

package powercut

import (
	"fmt"
	"maps"
)

// Book has the facts of all writers, over all power cuts of a disk. It is not safe for use by
// several goroutines at once.
type Book struct {
	IDs, Duplicates, Failed int    // IDs and numbers; those that were issued before; failed calls
	Writes                  int    // acknowledged writes of cells
	FirstFailed             string // text of the first failed call

	versions map[string]uint64
	limits   map[int64]int64
	next     map[string]int64 // the least Next that each sequence may have
	issued   map[string]int   // by ID or name and number, the cut that it was issued before
	cut      int
}

// NewBook returns a book without facts.
func NewBook() *Book {
	return &Book{versions: map[string]uint64{}, limits: map[int64]int64{}, next: map[string]int64{}, issued: map[string]int{}}
}

// Clone returns a copy.
func (b *Book) Clone() *Book {
	c := *b
	c.versions, c.limits, c.next, c.issued = maps.Clone(b.versions), maps.Clone(b.limits), maps.Clone(b.next), maps.Clone(b.issued)
	return &c
}

// Add notes a fact. It returns a finding if something was issued again.
func (b *Book) Add(f Fact) (broken string) {
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
		broken = b.issue(fmt.Sprintf("number %d of %s", f.Number, f.Sequence))
		b.next[f.Sequence] = max(b.next[f.Sequence], f.Number+1)
	default:
		broken = b.issue(fmt.Sprintf("ID %d", f.ID))
		b.limits[f.Node] = max(b.limits[f.Node], f.Limit)
	}
	return broken
}

func (b *Book) issue(what string) (broken string) {
	b.IDs++
	if before, ok := b.issued[what]; ok {
		b.Duplicates++
		return fmt.Sprintf("cut %d: %s was issued again, first before cut %d", b.cut, what, before+1)
	}
	b.issued[what] = b.cut
	return ""
}

// Cut notes that the power was cut.
func (b *Book) Cut() { b.cut++ }

// Compare compares what a directory has after a cut with the facts, and returns its findings.
func (b *Book) Compare(f Found) (broken []string) {
	add := func(format string, args ...any) {
		if len(broken) < 20 { // one lost file system breaks a promise of every cell
			broken = append(broken, fmt.Sprintf("cut %d: ", b.cut)+fmt.Sprintf(format, args...))
		}
	}
	for _, text := range f.Damaged {
		add("damaged: %s", text)
	}
	for key, version := range b.versions {
		if f.Versions[key] < version {
			add("cell %s has version %d, and %d was acknowledged", key, f.Versions[key], version)
		}
	}
	for node, limit := range b.limits {
		if f.Limits[node] < limit {
			add("node number %d has the limit %d, and %d was acknowledged", node, f.Limits[node], limit)
		}
	}
	for name, next := range b.next {
		if f.Next[name] < next {
			add("sequence %s begins at %d, and %d was issued", name, f.Next[name], next-1)
		}
	}
	return broken
}

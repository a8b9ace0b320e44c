package subject

import "slices"

// List returns all subjects that are not mutants, in the order of the report.
func List() []Subject { return slices.Concat(ours(), others()) }

// further are the subjects that only tests have.
var further []Subject

// Add makes subjects known that are not in [List], such as mutants. It must be called
// before the program notices that it is process 1 or a subject.
func Add(s ...Subject) { further = append(further, s...) }

// All returns the subjects of [List] and those that were added.
func All() []Subject { return slices.Concat(List(), further) }

// Find returns the subject with a name.
func Find(name string) (Subject, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Subject) bool { return s.Name == name })
	if i < 0 {
		return Subject{}, false
	}
	return all[i], true
}

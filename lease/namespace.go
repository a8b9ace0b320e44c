package lease

import "fmt"

// DefaultNamespace is the namespace of a store that was given no other: one of 1 to 48
// characters, as [CheckNamespace] says.
const DefaultNamespace = "tickflake"

// maxNamespace is the length in bytes of the longest namespace.
const maxNamespace = 48

// CheckNamespace returns a [*NamespaceError] unless name can name a namespace, that
// is, the cells of one fleet in a store that several share: 1 to 48 ASCII letters,
// digits, hyphens and underscores, which every engine takes as they are.
func CheckNamespace(name string) error {
	if len(name) == 0 || len(name) > maxNamespace {
		return &NamespaceError{Name: name, Problem: fmt.Sprintf("its length is %d", len(name))}
	}
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
		default:
			return &NamespaceError{Name: name, Problem: fmt.Sprintf("it holds %q", r)}
		}
	}
	return nil
}

// NamespaceError reports a name that cannot name a namespace.
type NamespaceError struct {
	Name    string
	Problem string // what is wrong with it
}

func (e *NamespaceError) Error() string {
	name := e.Name
	if len(name) > maxNamespace {
		name = name[:maxNamespace] + "…"
	}
	return fmt.Sprintf("namespace %q: %s; want 1 to %d ASCII letters, digits, hyphens and underscores", name, e.Problem, maxNamespace)
}

package lease

import "fmt"

// DefaultNamespace is the namespace of a store that was given no other.
const DefaultNamespace = "tickflake"

// MaxNamespace is the length in bytes of the longest namespace.
const MaxNamespace = 48

// CheckNamespace returns a [*NamespaceError] unless name can name a namespace, that
// is, the cells of one fleet in a store that several share: 1 to 48 ASCII letters,
// digits, hyphens and underscores, which every engine takes as they are.
func CheckNamespace(name string) error {
	if len(name) == 0 || len(name) > MaxNamespace {
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
	if len(name) > MaxNamespace {
		name = name[:MaxNamespace] + "…"
	}
	return fmt.Sprintf("namespace %q: %s; want 1 to %d ASCII letters, digits, hyphens and underscores", name, e.Problem, MaxNamespace)
}

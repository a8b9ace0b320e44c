package stores

import "fmt"

// DefaultNamespace is the namespace of a store that was given no other.
const DefaultNamespace = "tickflake"

// MaxNamespace is the length in bytes of the longest namespace.
const MaxNamespace = 48

// CheckNamespace returns an error unless name can name a namespace: the cells of one
// fleet in a server that several fleets share. A name has 1 to [MaxNamespace] ASCII
// letters, digits, hyphens and underscores; every engine takes them as they are.
func CheckNamespace(name string) error {
	problem := ""
	if len(name) == 0 || len(name) > MaxNamespace {
		problem = fmt.Sprintf("its length is %d", len(name))
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && problem == "" {
			problem = fmt.Sprintf("it holds %q", r)
		}
	}
	if problem == "" {
		return nil
	}
	if len(name) > MaxNamespace {
		name = name[:MaxNamespace] + "…"
	}
	return fmt.Errorf("namespace %q: %s; want 1 to %d ASCII letters, digits, hyphens and underscores", name, problem, MaxNamespace)
}

package kubernetes

import (
	"regexp"
	"strings"

	"github.com/tickflake/tickflake/stores"
)

var (
	toName  = strings.NewReplacer("_", "z0", ".", "z1", "z", "z3")
	toKey   = strings.NewReplacer("z0", "_", "z1", ".", "z2", "-", "z3", "z", ".", "/")
	capital = regexp.MustCompile("[A-Z]")
)

// nameOf returns a key, a prefix or a namespace as a part of an object's name: parts with dots
// between them, each of lower-case letters, digits and hyphens, with a letter or a digit at
// both ends. Slashes become dots. Every other character that may not stand where it stands becomes z
// and one more, so that no two keys have one name, and z is one of these.
func nameOf(key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		part = capital.ReplaceAllStringFunc(toName.Replace(part), func(c string) string { return "z" + strings.ToLower(c) })
		if rest, ok := strings.CutPrefix(part, "-"); ok {
			part = "z2" + rest
		}
		if rest, ok := strings.CutSuffix(part, "-"); ok {
			part = rest + "z2"
		}
		parts[i] = part
	}
	return strings.Join(parts, ".")
}

// keyOf returns the key of a name that nameOf has made, or false for any other name.
func keyOf(name string) (key string, ok bool) {
	key = toKey.Replace(name)
	return key, stores.CheckKey(key) == nil && nameOf(key) == name
}

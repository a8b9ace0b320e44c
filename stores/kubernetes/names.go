package kubernetes

import (
	"strings"

	"github.com/tickflake/tickflake/stores"
)

// nameOf returns a key, a prefix or a namespace as a part of an object's name: parts with dots
// between them, each of lower-case letters, digits and hyphens, with a letter or a digit at
// both ends. Slashes become dots. Every other character that may not stand where it stands becomes z
// and one more, so that no two keys have one name, and z is one of these.
func nameOf(key string) string {
	var name strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c == '/':
			name.WriteByte('.')
		case c == '_':
			name.WriteString("z0")
		case c == '.':
			name.WriteString("z1")
		case c == '-' && (i == 0 || i == len(key)-1 || key[i-1] == '/' || key[i+1] == '/'):
			name.WriteString("z2")
		case c == 'z':
			name.WriteString("z3")
		case 'A' <= c && c <= 'Z':
			name.WriteString("z" + strings.ToLower(string(c)))
		default:
			name.WriteByte(c)
		}
	}
	return name.String()
}

// keyOf returns the key of a name that nameOf has made, or false for any other name.
func keyOf(name string) (key string, ok bool) {
	var text strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '.':
			text.WriteByte('/')
		case c != 'z':
			text.WriteByte(c)
		case i+1 == len(name):
			return "", false
		default:
			i++
			at := strings.IndexByte("0123", name[i])
			if at < 0 {
				return "", false // no key has capital letters
			}
			text.WriteByte("_.-z"[at])
		}
	}
	key = text.String()
	return key, stores.CheckKey(key) == nil && nameOf(key) == name
}

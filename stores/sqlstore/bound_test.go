package sqlstore

import (
	"testing"

	"github.com/tickflake/tickflake/stores"
)

// A bound for the server divides the keys as the caller's bound does.
func FuzzBound(f *testing.F) {
	for _, b := range []string{"", "a", "a\x00", "a/\xff", "ä", "A", "{", "a{b", "z", "zzz~", "\x7f", "node/0000007\x00"} {
		f.Add(b, "node/0000007")
		f.Add(b, b)
		f.Add(b, "a")
		f.Add(b, "a/b")
		f.Add(b, "z")
		f.Add(b, "-")
	}
	f.Fuzz(func(t *testing.T, b, key string) {
		if stores.CheckKey(key) != nil {
			return
		}
		got := bound(b)
		if (key >= got) != (key >= b) {
			t.Errorf("bound(%q) = %q, and the key %q is on the other side", b, got, key)
		}
		if got == "" {
			t.Errorf("bound(%q) is empty, which some servers take for NULL", b)
		}
		for _, c := range []byte(got) {
			if c <= ' ' || c > '~' {
				t.Errorf("bound(%q) = %q", b, got)
			}
		}
	})
}

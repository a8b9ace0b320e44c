//go:build !(linux || darwin || (windows && amd64))

package cases

// Sno is nothing here, where muyo/sno cannot be linked.
func Sno() []Case { return nil }

//go:build !(linux && amd64)

package peers

// muyoSno is nothing here, where muyo/sno does not read package time, if it can be
// linked at all.
func muyoSno() []Peer { return nil }

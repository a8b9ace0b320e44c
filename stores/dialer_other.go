//go:build !linux

package stores

import "syscall"

// limitUnheard does nothing: the system's own limit holds.
func limitUnheard(string, string, syscall.RawConn) error { return nil }

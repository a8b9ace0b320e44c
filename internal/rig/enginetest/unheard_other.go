//go:build !linux

package enginetest

import "testing"

func checkUnheard(*testing.T, string) {}

//go:build !linux

package servertest

import "testing"

func checkUnheard(*testing.T, string) {}

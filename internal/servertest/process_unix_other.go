//go:build unix && !linux

package servertest

import "syscall"

func dieWithTest(*syscall.SysProcAttr) {}

// Those in the process's group are killed with it; the others are not found.
func descendants(int) []int { return nil }

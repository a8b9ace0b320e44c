//go:build unix && !linux

package program

import "syscall"

func dieWithUs(*syscall.SysProcAttr) {}

// Children in the process's group are killed with it; others are not found.
func descendants(int) []int { return nil }

// What a thread does until the signal reaches it is not waited for.
func awaitStop(int) {}

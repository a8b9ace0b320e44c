//go:build unix

package service

import (
	"math"
	"syscall"
)

// maxFiles returns how many files the process may open. Package os has raised the limit as far
// as it may be.
func maxFiles() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt64
	}
	return int64(min(uint64(limit.Cur), math.MaxInt64))
}

//go:build !unix

package service

import "math"

// maxFiles returns how many files the process may open: there is no limit.
func maxFiles() int64 { return math.MaxInt64 }

//go:build unix && !linux

package main

import (
	"syscall"
	"time"
)

// dieWithParent does nothing: only Linux can.
func dieWithParent(*syscall.SysProcAttr) {}

// adoptOrphans does nothing.
func adoptOrphans() {}

func living(cmd int, group, runs bool) (all []int, more bool) {
	return livingGroup(cmd, group, runs), false
}

// clockSteps never receives: the next look finds a step.
func clockSteps() (steps <-chan struct{}, stop func()) { return nil, func() {} }

// slept is not known.
func slept() time.Duration { return 0 }

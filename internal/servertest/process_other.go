//go:build !unix

package servertest

import (
	"errors"
	"os"
	"os/exec"
)

// Find has skipped the test, so nothing else runs here.
var errNotUnix = errors.New("servertest runs servers on Unix only")

func isolate(*exec.Cmd, string) error { return errNotUnix }

func give(string, string) error { return nil }

func kill(p *os.Process) error { return p.Kill() }

const supported = false

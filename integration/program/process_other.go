//go:build !unix

package program

import (
	"errors"
	"os"
	"os/exec"
)

// Find finds no server on these systems, so this error is rare.
var errNotUnix = errors.New("servers are run on Unix only")

func isolate(*exec.Cmd, string) error { return errNotUnix }

func give(string, string) error { return nil }

func kill(p *os.Process) error { return p.Kill() }

func suspend(*os.Process, bool) error { return errNotUnix }

const supported = false

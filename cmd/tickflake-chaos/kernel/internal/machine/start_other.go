//go:build !linux

package machine

import (
	"os"
	"os/exec"
)

func start(*exec.Cmd) (ended <-chan error, err error) { return nil, errHost }

func pair() (ours, theirs *os.File, err error) { return nil, nil, errHost }

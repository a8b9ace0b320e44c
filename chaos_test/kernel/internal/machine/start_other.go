//go:build !(linux && amd64)

package machine

import (
	"net"
	"os"
	"os/exec"
)

type process struct {
	cmd            *exec.Cmd
	console, qmp   net.Conn
	serial, stderr *os.File
	ended          <-chan error
}

func start(string, Config) (process, error) { return process{}, errHost }

// Start starts a program of the host.
func Start(*exec.Cmd) (ended <-chan error, err error) { return nil, errHost }

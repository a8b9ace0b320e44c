//go:build unix

package program

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// MissingError reports that a server cannot run here, since a file of it is missing.
type MissingError struct {
	Name    string // of the file
	Package string // of Debian, with the file; of several words, what else to do
}

// Error says what to install.
func (e *MissingError) Error() string {
	if strings.Contains(e.Package, " ") {
		return e.Name + " is not installed: " + e.Package
	}
	return fmt.Sprintf("%s is not installed; on Debian or Ubuntu: apt-get install %s", e.Name, e.Package)
}

// Find returns the path of a binary, from PATH or from one of the directories, which
// may be patterns such as /usr/lib/postgresql/*/bin; of several matches the last one
// counts. If there is none, the error is a [*MissingError] with that
// package.
func Find(name, debianPackage string, dirs ...string) (string, error) {
	for _, dir := range dirs {
		// Patterns come first: their tools belong together, and PATH may have another version.
		matches, err := filepath.Glob(filepath.Join(dir, name))
		for i := len(matches) - 1; err == nil && i >= 0; i-- {
			if path, err := exec.LookPath(matches[i]); err == nil {
				return path, nil
			}
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &MissingError{Name: name, Package: debianPackage}
	}
	return path, nil
}

// claims are listeners that hold the ports that Port has returned, as long as this process
// runs. They are kept here, or the garbage collector would close them.
var claims struct {
	sync.Mutex
	held []net.Listener
}

// Port returns the number of a TCP port that was free on 127.0.0.1 just now. It is not
// an ephemeral port, which on Linux are 32768 and up. On Linux, where 127.0.0.2 is this
// machine as well, no other call in any process returns the same port while this process
// runs.
func Port() (int, error) {
	var err error
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		var free, claim net.Listener
		if free, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err != nil {
			continue // it is in use
		}
		_ = free.Close()
		if claim, err = net.Listen("tcp", fmt.Sprint("127.0.0.2:", port)); err == nil {
			claims.Lock()
			claims.held = append(claims.held, claim)
			claims.Unlock()
		} else if runtime.GOOS == "linux" {
			continue // another process has claimed it
		}
		return port, nil
	}
	return 0, fmt.Errorf("look for a free port: %w", err)
}

// Dir makes a temporary directory with a short path in base, or, if base is "", in the
// system's directory. If we are root and user is not "", only user can enter and write
// it; else only we can. The caller removes it.
func Dir(base, user string) (string, error) {
	dir, err := os.MkdirTemp(base, "tf")
	if err != nil {
		return "", fmt.Errorf("make a temporary directory: %w", err)
	}
	if err := give(dir, user); err != nil {
		_ = os.Remove(dir)
		return "", fmt.Errorf("give a temporary directory to user %q: %w", user, err)
	}
	return dir, nil
}

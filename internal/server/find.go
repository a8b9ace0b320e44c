package server

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// MissingError reports that a server cannot run here, since a file of it is missing.
type MissingError struct {
	Name    string // of the file
	Package string // of Debian, that has it
}

// Error says what to install.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed; on Debian or Ubuntu: apt-get install %s", e.Name, e.Package)
}

// Find returns the path of a binary, from PATH or from one of the directories, which
// may be patterns such as /usr/lib/postgresql/*/bin; of several matches the last one
// counts. If there is none, the error is a [*MissingError].
func Find(name, debianPackage string, dirs ...string) (string, error) {
	if supported {
		if path := look(name, dirs); path != "" {
			return path, nil
		}
	}
	return "", &MissingError{Name: name, Package: debianPackage}
}

func look(name string, dirs []string) string {
	for _, dir := range dirs {
		// A pattern goes first: its tools belong together, and PATH may hold another's.
		matches, err := filepath.Glob(filepath.Join(dir, name))
		for i := len(matches) - 1; err == nil && i >= 0; i-- {
			if path, err := exec.LookPath(matches[i]); err == nil {
				return path
			}
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// Port returns the number of a TCP port that was free on 127.0.0.1 just now. Another
// process can take it before the server does, though hardly any looks for the same.
func Port() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("look for a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Dir makes a temporary directory with a short path in base, or where the system wants
// it if that is "". Only user can enter and write it, if we are root, and otherwise, or
// if user is "", we. The caller removes it.
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

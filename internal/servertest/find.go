package servertest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// RequireEnv is the environment variable that, if it is "1", makes a missing server
// a failure.
const RequireEnv = "TICKFLAKE_REQUIRE_SERVERS"

// Find returns the path of a binary, from PATH or from one of the directories, which
// may be patterns such as /usr/lib/postgresql/*/bin; of several matches the last one
// counts. If there is none, it skips the test, or fails it if [RequireEnv] is set,
// and says which Debian package to install.
func Find(t testing.TB, name, debianPackage string, dirs ...string) string {
	t.Helper()
	if supported {
		if path := look(name, dirs); path != "" {
			return path
		}
	}
	Missing(t, "%s is not installed; on Debian or Ubuntu: apt-get install %s", name, debianPackage)
	return ""
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

// Missing skips the test for want of a server, or fails it if [RequireEnv] is set.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf(format+" ("+RequireEnv+" is set)", args...)
	}
	t.Skipf(format, args...)
}

// Port returns the number of a TCP port that was free on 127.0.0.1 just now. Another
// process can take it before the server does, though hardly any looks for the same.
func Port(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("a free port: %v", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// Dir returns a temporary directory with a short path, in which user can write; "" is
// whoever runs the test. It is removed when the test ends.
func Dir(t testing.TB, user string) string {
	t.Helper()
	// That of t.TempDir is in one that only its owner may enter, and its path may be
	// too long for that of a Unix socket.
	dir, err := os.MkdirTemp("", "tf")
	if err != nil {
		t.Fatalf("a temporary directory: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the temporary directory: %v", err)
		}
	})
	if err := give(dir, user); err != nil {
		t.Fatalf("a temporary directory for user %q: %v", user, err)
	}
	return dir
}

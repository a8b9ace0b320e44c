//go:build unix

package program

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// RequireEnv is the environment variable that, if it is "1", makes a missing server
// a failure.
const RequireEnv = "TICKFLAKE_REQUIRE_SERVERS"

// Need fails the test if there is an error. If the error is a [*MissingError],
// it skips the test instead, unless [RequireEnv] is set.
func Need(t testing.TB, err error) {
	t.Helper()
	var missing *MissingError
	switch {
	case err == nil:
	case !errors.As(err, &missing):
		t.Fatal(err)
	case os.Getenv(RequireEnv) == "1":
		t.Fatalf("%v (%s is set)", err, RequireEnv)
	default:
		t.Skip(err)
	}
}

// FindFor is [Find], and skips the test, as Need does, if there is no such binary.
func FindFor(t testing.TB, name, debianPackage string, dirs ...string) string {
	t.Helper()
	path, err := Find(name, debianPackage, dirs...)
	Need(t, err)
	return path
}

// interpreters are those of languages, by what the names of their programs end with. The probe fails without the
// client for Redis of a package of Debian's; npm installs that of node.
var interpreters = map[string]struct {
	name, debian, library string
	probe                 []string
}{
	".mjs": {name: "node", debian: "nodejs"},
	".php": {"php", "php-cli", "php-redis", []string{"-r", `exit(extension_loaded("redis") ? 0 : 1);`}},
	".py":  {"python3", "python3", "python3-redis", []string{"-c", "import redis"}},
	".rb":  {"ruby", "ruby", "ruby-redis", []string{"-e", "require 'redis'"}},
}

// InterpreterFor is [FindFor] of what runs a program, by the end of its name, with a client for Redis.
func InterpreterFor(t testing.TB, program string) string {
	t.Helper()
	i := interpreters[filepath.Ext(program)]
	path := FindFor(t, i.name, i.debian, "/usr/bin")
	if i.probe != nil && exec.Command(path, i.probe...).Run() != nil {
		Need(t, &MissingError{Name: "the Redis client of " + i.name, Package: i.library})
	}
	return path
}

// notShort skips a test that is about to start a server.
func notShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no server")
	}
}

// PortFor is [Port]. With -short it skips the test, which wants the port for a server.
func PortFor(t testing.TB) int {
	t.Helper()
	notShort(t)
	port, err := Port()
	Need(t, err)
	return port
}

// For runs a server until the test ends, and returns when it is ready. If it does
// not become ready, the test fails at once. With -short it skips the test.
func For(t testing.TB, c Config) *Process {
	t.Helper()
	notShort(t)
	p, err := Start(t.Context(), c)
	Need(t, err)
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stop %s: %v", c.Path, err)
		}
		if t.Failed() {
			t.Logf("%s has printed:\n%s", c.Path, p.Output())
		}
	})
	return p
}

// RunFor is [Run]. If the command fails, the test fails at once.
func RunFor(t testing.TB, c Config) string {
	t.Helper()
	out, err := Run(t.Context(), c)
	Need(t, err)
	return out
}

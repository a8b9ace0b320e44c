package program

import (
	"errors"
	"os"
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

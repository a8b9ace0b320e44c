package servers

import (
	"os"
	"testing"

	"github.com/tickflake/tickflake/integration/program"
)

// For runs a server until the test ends. If it is not installed, the test is skipped, or fails
// with TICKFLAKE_REQUIRE_SERVERS=1. If the test fails, the output of the server is shown.
func For(t testing.TB, kind Kind, settings ...string) *Server {
	t.Helper()
	return ForAll(t, Wanted{Kind: kind, Settings: settings})[0]
}

// ForAll is [For] for several servers, which start at once.
func ForAll(t testing.TB, wanted ...Wanted) []*Server {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs a server, which takes longer than -short allows")
	}
	for i := range wanted {
		if wanted[i].Base == "" {
			wanted[i].Base = os.TempDir() // not t.TempDir, which other users cannot enter
		}
	}
	all, stop := All(t.Context(), wanted...)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop the servers: %v", err)
		}
		for _, s := range all {
			if t.Failed() && s.Process != nil {
				t.Logf("%s at %s has printed:\n%s", s.Kind, s.Addr, s.Output())
			}
		}
	})
	for _, s := range all {
		program.Need(t, s.Err)
	}
	return all
}

//go:build unix

package enginetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig"
	"github.com/tickflake/tickflake/internal/rig/servers"
)

// TestAlone has the tests of an engine whose only server is killed under processes that are killed, too, and
// the moves of a fleet between it and a directory.
func TestAlone(t *testing.T, s *servers.Server) {
	t.Run("processes", func(t *testing.T) { testProcesses(t, s) })
	TestMoves(t, s)
}

// testProcesses runs "tickflake serve" on the store, under load. The processes are killed with -9, their clocks
// step, they are frozen for longer than a grant lasts, and so is the way to the store. Without -long each fault
// meets one of the two processes, and grants are shorter.
func testProcesses(t *testing.T, s *servers.Server) {
	const between = 10 // calls of each client
	window := time.Second
	if *long {
		window = 2 * time.Second
	}
	t.Cleanup(func() { _ = rig.Clean() })
	f, err := rig.StartFleet(t.Context(), rig.FleetConfig{Store: s, Servers: 2, Networks: true, GoClients: 1, Rate: 50,
		Each: func(_ int, c *rig.ServeConfig) {
			c.Clock = true
			c.Args = append(c.Args, "--window", window.String(), "--strategy", "borrow:10s")
		}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	for i, fault := range []struct {
		name string
		draw rig.Draw
	}{
		{"server killed", rig.Draw{}},
		{"server killed, clock stepped", rig.Draw{Offset: -4 * time.Second}},
		{"clock stepped", rig.Draw{Offset: 4 * time.Second}},
		{"server stopped for a while", rig.Draw{Length: 2 * window}},
		{"store cut off, bytes held", rig.Draw{Length: 2 * window}},
		{"store killed", rig.Draw{}},
	} {
		for j, m := range f.Members {
			if *long || i%2 == j {
				require.NoError(t, f.More(t.Context(), between), fault.name)
				require.NoError(t, f.Do(fault.name, m, fault.draw))
			}
		}
	}
	require.NoError(t, f.More(t.Context(), between))
	f.Recovered()
	f.Rest()
	f.Check()
	assert.Empty(t, f.Broken())
}

package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/rig"
	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/stores"
)

// TestAlone has the tests of an engine whose only server is killed and stopped under fleets, of goroutines and
// of processes, and the moves of a fleet between it and a directory.
func TestAlone(t *testing.T, s *servers.Server) {
	t.Run("outage", func(t *testing.T) { testOutage(t, s) })
	t.Run("processes", func(t *testing.T) { testProcesses(t, s) })
	at := func(namespace string) func() stores.Store {
		return func() stores.Store { return Open(t, s.At(s.Addr, "namespace="+namespace)) }
	}
	in := func(path string) func() stores.Store { return func() stores.Store { return Open(t, path) } }
	for name, move := range map[string]Move{
		"moved here": {From: in(t.TempDir()), To: at("here")},
		"moved away": {From: at("away"), To: in(t.TempDir())},
	} {
		t.Run(name, func(t *testing.T) { assert.Empty(t, move.Run(t), "issued twice") })
	}
}

// testOutage kills the server of a fleet, and later stops it for longer than a grant lasts,
// while processes crash and clocks step.
func testOutage(t *testing.T, s *servers.Server) {
	const window = 2 * time.Second
	fleet := StartFleet(t, FleetConfig{Processes: 3, Window: window, Timeout: time.Second,
		Open: func(ctx context.Context) (stores.Store, error) {
			return stores.Open(ctx, s.At(s.Addr, "namespace=outage"))
		}})
	require.NoError(t, s.Kill())
	fleet.Crash(0)
	fleet.Step(-3 * time.Second)
	require.NoError(t, s.Start())
	fleet.recovered(t, "killed")
	require.NoError(t, s.Suspend())
	fleet.Crash(1)
	fleet.Step(time.Hour, 2)
	resume := time.AfterFunc(window+time.Second, func() { _ = s.Resume() })
	defer resume.Stop()
	fleet.recovered(t, "stopped")
	fleet.Close(t).Check(t)
}

// testProcesses runs "tickflake serve" on the store, under load. The processes are killed with -9, their clocks
// step, they are frozen for longer than a grant lasts, and so is the way to the store.
func testProcesses(t *testing.T, s *servers.Server) {
	const window = 2 * time.Second
	f, err := rig.StartFleet(t.Context(), rig.FleetConfig{Store: s, Servers: 2, Networks: true, GoClients: 1, Rate: 20,
		Each: func(_ int, c *rig.ServeConfig) {
			c.Clock = true
			c.Args = append(c.Args, "--window", window.String(), "--strategy", "borrow:10s")
		}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	for _, fault := range []struct {
		name string
		draw rig.Draw
	}{
		{"server killed", rig.Draw{}},
		{"server killed, clock stepped", rig.Draw{Offset: -2 * window}},
		{"clock stepped", rig.Draw{Offset: 2 * window}},
		{"server stopped for a while", rig.Draw{Length: 2 * window}},
		{"store cut off, bytes held", rig.Draw{Length: 2 * window}},
		{"store killed", rig.Draw{}},
	} {
		for _, m := range f.Members {
			require.NoError(t, f.More(t.Context(), 20), fault.name)
			require.NoError(t, f.Do(fault.name, m, fault.draw))
		}
	}
	require.NoError(t, f.More(t.Context(), 20))
	f.Recovered()
	f.Rest()
	f.Check()
	assert.Empty(t, f.Broken())
}

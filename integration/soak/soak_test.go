//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/servers"
)

func TestMain(m *testing.M) { fleet.Main(m) }

// short is a soak for a test.
func short(stores ...servers.Kind) settings {
	return settings{length: 4 * time.Second, stores: stores, rate: 50, every: 500 * time.Millisecond, step: time.Second, only: regexp.MustCompile(""), progress: 200 * time.Millisecond, seed: 1}
}

func run(t *testing.T, s settings) *Report {
	t.Helper()
	var out bytes.Buffer
	r, err := soak(t.Context(), s, &out)
	require.NoError(t, err)
	r.print(&out)
	t.Log(out.String())
	return r
}

// All promises hold on each store, and every client works. It runs alone: the soak compares the
// size of its own process.
func TestSoak(t *testing.T) {
	r := run(t, short(servers.Directory, servers.Etcd))
	assert.Empty(t, r.Broken)
	require.Len(t, r.Fleets, 2)
	for _, f := range r.Fleets {
		assert.NotEmpty(t, f.Faults, f.Store)
		for _, c := range f.Clients {
			assert.Positive(t, c.IDs, "%s, %s", f.Store, c.Name)
			assert.Positive(t, c.Numbers, "%s, %s", f.Store, c.Name)
		}
	}
	assert.Len(t, r.Sizes, 1+2*serverCount)
	for _, g := range r.Sizes {
		assert.Positive(t, g.End.RSS, g.Process)
		assert.Positive(t, g.End.Files, g.Process)
	}
	path := filepath.Join(t.TempDir(), "soak.json")
	require.NoError(t, r.save(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"broken": []`)
}

// alone gives each server a store of its own.
func alone(i int, c *fleet.ServeConfig) { c.Store = fmt.Sprint(c.Store, i) }

// A soak of servers with a bug fails, and names the promise that the bug breaks.
func TestMutantsAreCaught(t *testing.T) {
	t.Parallel()
	none := regexp.MustCompile("^$")
	for mutant, c := range map[string]struct {
		change func(*settings)
		breaks fleet.Promise
		says   string
	}{
		"all servers have the node number 1": {func(s *settings) {
			s.each = func(i int, c *fleet.ServeConfig) { alone(i, c); c.Args = []string{"--node", "1"} }
			s.rate = 1000 // else each client keeps to its own millisecond of ten, and the servers may never meet
		}, fleet.Unique, "directory: ID "},
		"the node number has no lease: a new process does not know how far the last one came": {func(s *settings) {
			s.each = func(i int, c *fleet.ServeConfig) { alone(i, c); c.Args = []string{"--node", fmt.Sprint(i)} }
			s.faults = []fleet.Fault{{Name: "server killed, clock stepped, store lost", Spare: true, Do: func(f *fleet.Fleet, m *fleet.Member, _ fleet.Draw) error {
				if err := m.Kill(); err != nil {
					return err
				}
				cells, _ := filepath.Glob(fmt.Sprint(f.Store.URL, m.Index-1, "/node*"))
				for _, cell := range cells {
					_ = os.Remove(cell)
				}
				m.Clock.Set(-f.Since(time.Now()) / 2) // when the last one issued
				return m.Start()
			}}}
		}, fleet.Unique, "directory: ID "},
		"each server has a store of its own for sequences": {func(s *settings) {
			s.each = func(i int, c *fleet.ServeConfig) { alone(i, c); c.Args = []string{"--node", fmt.Sprint(i)} }
		}, fleet.Unique, "number of the segmented sequence "},
		"the sequence that should be ordered is segmented": {func(s *settings) { s.ordered = []string{"--mode", "segmented"} }, fleet.InOrder, "ordered sequence"},
		"a server ends": {func(s *settings) {
			s.faults = []fleet.Fault{{Name: "server ends", Do: func(_ *fleet.Fleet, m *fleet.Member, _ fleet.Draw) error { return m.Kill() }}}
		}, fleet.Lives, ": server "},
		"connections are never closed": {func(s *settings) {
			var kept []net.Conn
			s.faults = []fleet.Fault{{Name: "leak", Do: func(_ *fleet.Fleet, m *fleet.Member, _ fleet.Draw) error {
				for range 100 {
					conn, err := net.Dial("tcp", m.RESP)
					if err != nil {
						return err
					}
					kept = append(kept, conn)
				}
				return nil
			}}}
		}, fleet.Bounded, "files"},
	} {
		t.Run(mutant, func(t *testing.T) {
			t.Parallel()
			s := short(servers.Directory)
			s.only, s.until, s.rate, s.step = none, c.says, 100, 2*time.Second
			s.faults = []fleet.Fault{{Name: "none", Do: func(*fleet.Fleet, *fleet.Member, fleet.Draw) error { return nil }}}
			c.change(&s)
			if c.breaks != fleet.Bounded { // that is seen at the end
				s.length = time.Minute
			}
			r := run(t, s)
			i := slices.IndexFunc(r.Broken, func(b fleet.Broken) bool { return b.Promise == c.breaks })
			require.GreaterOrEqual(t, i, 0, "%v", r.Broken)
			assert.Contains(t, fmt.Sprint(r.Broken[i].Examples), c.says)
		})
	}
}

// What a process may grow by is no broken promise, and more is, for each of memory, goroutines and files.
func TestGrowth(t *testing.T) {
	start := fleet.Size{RSS: 30 << 20, Goroutines: 20, Files: 15}
	for grown, want := range map[fleet.Size]int{{RSS: mostBytes, Goroutines: mostGoroutines, Files: mostFiles}: 0, {RSS: mostBytes + 1}: 1, {Goroutines: mostGoroutines + 1}: 1, {Files: mostFiles + 1}: 1} {
		end := fleet.Size{RSS: start.RSS + grown.RSS, Goroutines: start.Goroutines + grown.Goroutines, Files: start.Files + grown.Files}
		assert.Len(t, Growth{Process: "server", Start: start, End: end}.beyond(0), want)
	}
}

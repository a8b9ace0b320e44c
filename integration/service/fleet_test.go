//go:build unix

package service

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
)

var (
	kills    = flag.Int("service.kills", fewer(20), "kill the server so many times")
	restarts = flag.Int("service.restarts", 2, "restart each of two servers so many times")
)

// fewer returns n, or a quarter of it in a program with the race detector, which is slow.
func fewer(n int) int {
	if program.Race {
		return n / 4
	}
	return n
}

// Servers of one store are disturbed again and again under the load of the Go client and of
// clients of each protocol. No ID and no number is issued twice, and all are in order. With a
// second server, or where the strategy waits or borrows, no call fails.
func TestFleet(t *testing.T) {
	t.Parallel()
	clock := func(strategy string) func(int, *program.ServeConfig) {
		return func(_ int, c *program.ServeConfig) {
			c.Clock, c.Raw = true, true
			c.Args = append(c.Args, "--strategy", strategy)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	back := func(most time.Duration) func(*testing.T, *fleet.Fleet, *fleet.Member) {
		return func(t *testing.T, f *fleet.Fleet, m *fleet.Member) {
			m.Clock.Set(-most/2 - time.Duration(random.Int64N(int64(most)/2)))
			require.NoError(t, f.More(t.Context(), 10))
			m.Clock.Set(0)
		}
	}
	fault := func(name string) func(*testing.T, *fleet.Fleet, *fleet.Member) {
		return func(t *testing.T, f *fleet.Fleet, m *fleet.Member) { require.NoError(t, f.Do(name, m, fleet.Draw{})) }
	}
	for name, row := range map[string]struct {
		store   servers.Kind
		config  fleet.Config
		times   int // for each server
		disturb func(*testing.T, *fleet.Fleet, *fleet.Member)
		check   func(*testing.T, *fleet.Fleet)
	}{
		"killed":                       {servers.Directory, fleet.Config{Servers: 1, GoClients: 1, Sequences: short}, *kills, fault("server killed"), costs},
		"killed, of two on PostgreSQL": {servers.PostgreSQL, fleet.Config{Servers: 2, GoClients: 1, Sequences: short}, *kills / 2, fault("server killed"), costs},
		"rolling restart": {servers.Directory, fleet.Config{Servers: 2, GoClients: 2, Strict: true}, *restarts, fault("server drained"), func(t *testing.T, f *fleet.Fleet) {
			n, highest := f.Numbers[fleet.Ordered].Count()
			assert.Equal(t, highest, n, "a number is missing: a server has cut off a request that it had begun")
		}},
		"one of two is killed": {servers.Directory, fleet.Config{Servers: 2, GoClients: 2, Strict: true}, 1, func(t *testing.T, f *fleet.Fleet, m *fleet.Member) {
			require.NoError(t, m.Kill())
			require.NoError(t, f.More(t.Context(), 20), "with one server")
			require.NoError(t, m.Start())
		}, nil},
		"clock steps, wait":   {servers.Directory, fleet.Config{Servers: 1, Strict: true, Each: clock("wait")}, fewer(20), back(100 * time.Millisecond), busy(false)},
		"clock steps, borrow": {servers.Directory, fleet.Config{Servers: 1, Strict: true, Each: clock("borrow:1s")}, fewer(20), back(100 * time.Millisecond), busy(false)},
		"clock steps, reject": {servers.Directory, fleet.Config{Servers: 1, Each: clock("reject")}, fewer(8), back(400 * time.Millisecond), busy(true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.config.Store = servers.For(t, row.store)
			f := fleet.For(t, row.config)
			for range row.times {
				for _, m := range f.Members {
					require.NoError(t, f.More(t.Context(), 5+random.Int64N(15))) // and at any moment after it
					row.disturb(t, f, m)
				}
			}
			require.NoError(t, f.More(t.Context(), 20))
			f.Verify(t)
			if row.check != nil {
				row.check(t, f)
			}
		})
	}
	for _, kind := range []servers.Kind{servers.Directory, servers.Etcd, servers.S3, servers.Kubernetes} {
		t.Run(fmt.Sprint("soak on ", kind), func(t *testing.T) { testSoak(t, kind) })
	}
}

// short makes segments short, so that a killed server mostly loses one.
var short = map[string][]string{fleet.Segmented: {"--step", "50"}}

// costs checks what kills have cost: some requests have failed, and no more numbers are missing than those of two segments, and of
// the requests that ran: one of each of three clients, and two of the Go client.
func costs(t *testing.T, f *fleet.Fleet) {
	var failed int64
	for _, c := range f.Clients {
		failed += c.Count().Again
	}
	kills := f.Disturbed()["server killed"]
	assert.GreaterOrEqual(t, failed, kills, "the kills have disturbed no request, so the test shows nothing")
	for name, most := range map[string]int64{fleet.Ordered: 5 * 3, fleet.Segmented: 2*50 + 5*20} {
		n, highest := f.Numbers[name].Count()
		t.Logf("%s: %d numbers; %d kills, after which %d are missing, and %d may be", name, n, kills, highest-n, kills*most)
		assert.LessOrEqual(t, highest-n, kills*most, name)
		assert.True(t, name == fleet.Ordered || highest > n, "the kills have cost no segment")
	}
}

// busy checks that a client was told that the server is busy, or that none was.
func busy(yes bool) func(*testing.T, *fleet.Fleet) {
	return func(t *testing.T, f *fleet.Fleet) {
		var told int64
		for _, c := range f.Clients {
			told += c.Count().Busy
		}
		assert.Equal(t, yes, told > 0)
	}
}

//go:build unix

package service

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/fleet"
	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/integration/servers"
	_ "github.com/tickflake/tickflake/integration/servers/etcd"
)

var (
	soak     = flag.Duration("service.soak", 0, "soak for so long; by default for some seconds or rounds")
	soakSeed = flag.Uint64("service.seed", rand.Uint64(), "of the faults of a soak")
)

// soaked is a fleet whose clients and servers have proxies between them, and its faults.
type soaked struct {
	fleet.Config
	faults []fleet.Fault
	says   string // of a mutant: the example that shows it
}

// newSoak soaks three servers and six clients: three of package client, and one of each protocol.
// A server reads a clock that is stepped: the last one directly, the others through a monoclock,
// which sees a step when the server starts again. A directory is on one machine, and its window is
// short anyhow; others have one so short that the store is sometimes away for longer.
func newSoak(kind servers.Kind) *soaked {
	return &soaked{Config: fleet.Config{Servers: 3, Networks: true, GoClients: 3, Rate: 25, Each: func(i int, c *program.ServeConfig) {
		c.Clock, c.Raw = true, i == 2
		if kind != servers.Directory {
			c.Args = []string{"--window", "6s"}
		}
	}}, faults: fleet.FaultsOn(kind)}
}

// run makes one fault after the other for so long, or until a mutant is caught. A server is compared with what it was after a
// minute, or after a tenth of a short soak.
func (s *soaked) run(t *testing.T, length time.Duration) *fleet.Fleet {
	f := fleet.For(t, s.Config)
	t.Logf("-service.soak %v -service.seed %d", length, *soakSeed)
	ctx, end := context.WithTimeout(t.Context(), length)
	defer end()
	every := min(3*time.Second, length/8)
	disturbed := make(chan struct{})
	go func() {
		defer close(disturbed)
		f.Disturb(ctx, fleet.Disturbance{Faults: s.faults, Every: every, Step: 2 * time.Second, Seed: *soakSeed})
	}()
	fleet.Pause(ctx, min(time.Minute, length/10))
	start, own := f.Sizes(ctx), program.OwnSize()
	for ctx.Err() == nil && (s.says == "" || !strings.Contains(fmt.Sprint(f.Broken()), s.says)) {
		fleet.Pause(ctx, min(10*time.Second, length/20))
		f.Check()
	}
	end()
	<-disturbed
	f.Recovered()
	f.Grown(t.Context(), start)
	if *soak > 0 { // else other tests run beside it; the ledgers of four fleets keep each call in up to four parts of 48 bytes, of twice the capacity
		most := program.Most
		for _, w := range f.Clients {
			most.RSS += 4 * 4 * 2 * 48 * w.Count().Served
		}
		for _, how := range program.Beyond(own, program.OwnSize(), most) {
			f.Break(fleet.Bounded, "the clients' process had %s", how)
		}
	}
	f.Rest()
	t.Log(f.Disturbed())
	return f
}

// Every fault of a fleet comes again and again. All promises hold, and every client gets IDs and numbers.
func testSoak(t *testing.T, kind servers.Kind) {
	t.Parallel()
	var settings []string
	switch {
	case *soak == 0 && (kind == servers.S3 || kind == servers.Kubernetes):
		t.Skip("-service.soak says for how long")
	case kind == servers.S3:
		_ = os.Setenv("AWS_ACCESS_KEY_ID", servers.S3User) // servers take them
		_ = os.Setenv("AWS_SECRET_ACCESS_KEY", servers.S3Secret)
	case kind == servers.Kubernetes:
		settings = []string{"--etcd-servers=http://" + servers.For(t, servers.Etcd).Addr}
	}
	s := newSoak(kind)
	s.Store = servers.For(t, kind, settings...)
	f := s.run(t, max(*soak, 4*time.Second))
	assert.NotEmpty(t, f.Disturbed())
	for _, w := range f.Clients {
		assert.True(t, w.Count().IDs > 0 && w.Count().Numbers > 0, "%+v", w.Count())
	}
	f.Verify(t)
}

// A soak of servers with a bug fails, and names the promise that the bug breaks.
func TestMutantsAreCaught(t *testing.T) {
	t.Parallel()
	// alone gives each server a store and a node number of its own.
	alone := func(node func(i int) int) func(*soaked) {
		return func(s *soaked) {
			each := s.Each
			s.Each = func(i int, c *program.ServeConfig) {
				each(i, c)
				c.Store = fmt.Sprint(c.Store, i)
				c.Args = []string{"--node", fmt.Sprint(node(i))}
			}
		}
	}
	own := func(i int) int { return i }
	fault := func(name string, spare bool, do func(*fleet.Fleet, *fleet.Member) error) func(*soaked) {
		return func(s *soaked) {
			s.faults = []fleet.Fault{{Name: name, Spare: spare, Do: func(f *fleet.Fleet, m *fleet.Member, _ fleet.Draw) error { return do(f, m) }}}
		}
	}
	var kept []net.Conn
	for mutant, c := range map[string]struct {
		breaks fleet.Promise
		says   string
		change []func(*soaked)
	}{
		"all servers have the node number 1": {fleet.Unique, "directory: ID ", []func(*soaked){alone(func(int) int { return 1 }),
			func(s *soaked) { s.Rate = 1000 }}}, // else each client keeps to its own millisecond of ten, and the servers may never meet
		"the node number has no lease: a new process does not know how far the last one came": {fleet.Unique, "directory: ID ", []func(*soaked){alone(own),
			fault("server killed, clock stepped, store lost", true, func(f *fleet.Fleet, m *fleet.Member) error {
				if err := m.Kill(); err != nil {
					return err
				}
				cells, _ := filepath.Glob(fmt.Sprint(f.Store.URL, m.Index-1, "/node*"))
				for _, cell := range cells {
					_ = os.Remove(cell)
				}
				m.Clock.Set(-f.Since(time.Now()) / 2) // when the last one issued
				return m.Start()
			})}},
		"each server has a store of its own for sequences": {fleet.Unique, "number of the segmented sequence ", []func(*soaked){alone(own)}},
		"the sequence that should be ordered is segmented": {fleet.InOrder, "ordered sequence", []func(*soaked){func(s *soaked) {
			s.Sequences = map[string][]string{fleet.Ordered: {"--mode", "segmented"}}
		}}},
		"a server ends": {fleet.Lives, ": server ", []func(*soaked){fault("server ends", false, func(_ *fleet.Fleet, m *fleet.Member) error { return m.Kill() })}},
		"connections are never closed": {fleet.Bounded, "files", []func(*soaked){fault("leak", false, func(_ *fleet.Fleet, m *fleet.Member) error {
			for range 100 {
				conn, err := net.Dial("tcp", m.RESP)
				if err != nil {
					return err
				}
				kept = append(kept, conn)
			}
			return nil
		})}},
	} {
		t.Run(mutant, func(t *testing.T) {
			t.Parallel()
			s := newSoak(servers.Directory)
			s.Store, s.Rate, s.says = servers.For(t, servers.Directory), 100, c.says
			fault("none", false, func(*fleet.Fleet, *fleet.Member) error { return nil })(s)
			for _, change := range c.change {
				change(s)
			}
			length := time.Minute
			if c.breaks == fleet.Bounded { // that is seen at the end
				length = 4 * time.Second
			}
			broken := s.run(t, length).Broken()
			i := slices.IndexFunc(broken, func(b fleet.Broken) bool { return b.Promise == c.breaks })
			require.GreaterOrEqual(t, i, 0, "%v", broken)
			assert.Contains(t, fmt.Sprint(broken[i].Examples), c.says)
		})
	}
}

// What a server may grow by is no broken promise, and more is, for each of memory, goroutines and files.
func TestGrowth(t *testing.T) {
	from, most := program.Size{RSS: 30, Goroutines: 20, Files: 15}, program.Size{RSS: 3, Goroutines: 2, Files: 1}
	for to, want := range map[program.Size]int{{RSS: 33, Goroutines: 22, Files: 16}: 0, {RSS: 34, Goroutines: 23, Files: 17}: 3, {RSS: 34}: 1, {RSS: 1, Goroutines: 23}: 1, {RSS: 1, Files: 17}: 1, {Files: 17}: 0} {
		assert.Len(t, program.Beyond(from, to, most), want, to)
	}
}

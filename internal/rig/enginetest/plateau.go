package enginetest

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/rig/servers"
	"github.com/tickflake/tickflake/internal/rig/servertest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

var plateauTime = flag.Duration("plateau", 500*time.Millisecond, "how long a server misbehaves in each part of the tests of connections")

// Plateau checks that the connections of some clients, as their server counts them, stay
// below a bound while the server misbehaves, and are at rest afterwards. On Linux, it also checks
// that they are those of a [dial.Dialer].
type Plateau struct {
	Server *servers.Server

	// Open opens a client of a namespace through addr.
	Open func(t testing.TB, addr, namespace string) stores.Store

	// Count returns how many connections the server has, without the caller's own. nil
	// stands for Sockets.
	Count func(context.Context) (int, error)

	// AtRest and AtMost are the connections of one client. While the network keeps connections
	// open and passes nothing on, a server does not see that the client has closed them:
	// there are AtMost more for each [dial.MaxSilence].
	AtRest, AtMost int

	// Locks are ways to make the server let writes wait until unlock, by their names.
	Locks map[string]func(t testing.TB) (unlock func())
}

const (
	plateauClients = 8
	// It is shorter than most waits at a server, as with short windows.
	plateauTimeout = 250 * time.Millisecond
	plateauPause   = 25 * time.Millisecond
)

// Run runs one subtest for each fault.
func (p Plateau) Run(t *testing.T) {
	if p.Count == nil {
		p.Count = func(context.Context) (int, error) { return Sockets(t, p.Server.Addr), nil }
	}
	wait := func(over func(time.Duration) bool) {
		for !over(plateauTimeout) {
		}
	}
	for name, lock := range p.Locks {
		t.Run(name, func(t *testing.T) {
			p.run(t, false, func(_ *storetest.Proxy, over func(time.Duration) bool) {
				defer lock(t)()
				wait(over)
			})
		})
	}
	t.Run("suspended", func(t *testing.T) {
		p.run(t, false, func(_ *storetest.Proxy, over func(time.Duration) bool) {
			for end := false; !end && !over(plateauTimeout); {
				servertest.Need(t, p.Server.Suspend())
				end = over(2 * plateauTimeout)
				servertest.Need(t, p.Server.Resume())
			}
		})
	})
	for name, held := range map[string][]storetest.Direction{"requests held": {storetest.ToServer}, "all held": {storetest.ToServer, storetest.ToClient}} {
		t.Run(name, func(t *testing.T) {
			p.run(t, true, func(proxy *storetest.Proxy, over func(time.Duration) bool) {
				for _, d := range held {
					proxy.Hold(d)
				}
				wait(over)
				proxy.Cut()
				proxy.Resume()
			})
		})
	}
}

// run opens the clients, lets fault run, and watches the server. over waits for some time,
// and reports whether the fault must end. held says that the fault hides closed connections
// from the server.
func (p Plateau) run(t *testing.T, held bool, fault func(proxy *storetest.Proxy, over func(time.Duration) bool)) {
	before, err := p.count() // a driver may leave a connection of an earlier test
	servertest.Need(t, err)
	proxy := storetest.NewProxy(t, p.Server.Addr)
	var clients []*plateauClient
	for i := range plateauClients {
		c := &plateauClient{store: p.Open(t, proxy.Addr(), "plateau"), key: fmt.Sprintf("node/%07d", i)}
		c.wait(t) // and the table is made
		clients = append(clients, c)
	}
	checkUnheard(t, proxy.Addr())
	stop := make(chan struct{})
	var running sync.WaitGroup
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }); running.Wait() }
	defer end()
	for _, c := range clients {
		running.Go(func() { c.work(stop) })
	}
	var peak atomic.Int64 // the largest count so far; only the next goroutine writes it
	running.Go(func() {
		for {
			if n, err := p.count(); err == nil {
				peak.Store(max(peak.Load(), int64(n)))
			}
			select {
			case <-stop:
				return
			case <-time.After(plateauPause):
			}
		}
	})

	begin := time.Now()
	fault(proxy, func(wait time.Duration) bool {
		time.Sleep(wait) // the length of the fault
		return time.Since(begin) >= *plateauTime
	})
	most := before + plateauClients*p.AtMost
	if held {
		most += plateauClients * p.AtMost * int(time.Since(begin)/dial.MaxSilence)
	}
	for _, c := range clients {
		c.wait(t)
	}
	end()
	atRest := before + plateauClients*p.AtRest
	Until(t, func(context.Context) error {
		n, err := p.count()
		if err == nil && n > atRest {
			err = fmt.Errorf("%d connections after the fault, want at most %d", n, atRest)
		}
		return err
	})
	t.Logf("at most %d connections of %d clients, in %v", peak.Load(), plateauClients, time.Since(begin).Round(time.Second))
	if peak.Load() > int64(most) {
		t.Errorf("%d connections of %d clients, want at most %d", peak.Load(), plateauClients, most)
	}
}

func (p Plateau) count() (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), plateauTimeout)
	defer cancel()
	return p.Count(ctx)
}

// plateauClient uses a store as a keeper does, without its window: it reads its cell after
// a failure, and writes it.
type plateauClient struct {
	store stores.Store
	key   string
}

func (c *plateauClient) work(stop <-chan struct{}) {
	cell := stores.Cell{Key: c.key}
	var err error = context.Canceled // the cell is not known yet
	for {
		ctx, cancel := context.WithTimeout(context.Background(), plateauTimeout)
		if err != nil {
			cell, err = c.store.Read(ctx, c.key)
		} else {
			cell.Version, err = c.store.Swap(ctx, c.key, cell.Version, nil)
		}
		cancel()
		select {
		case <-stop:
			return
		case <-time.After(plateauPause):
		}
	}
}

// wait waits until the client writes.
func (c *plateauClient) wait(t testing.TB) {
	t.Helper()
	Until(t, func(ctx context.Context) error {
		cell, err := c.store.Read(ctx, c.key+"0")
		if err == nil {
			_, err = c.store.Swap(ctx, cell.Key, cell.Version, nil)
		}
		return err
	})
}

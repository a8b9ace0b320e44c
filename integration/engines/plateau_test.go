package engines

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickflake/tickflake/integration/program"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/engine/dial"
	"github.com/tickflake/tickflake/stores/storetest"
)

var plateauTime = flag.Duration("plateau", 500*time.Millisecond, "how long a server misbehaves in each part of the tests of connections")

const (
	plateauClients = 8
	// It is shorter than most waits at a server, as with short windows.
	plateauTimeout = 250 * time.Millisecond
	plateauPause   = 25 * time.Millisecond
)

// testPlateau checks, with one subtest for each fault, that the connections of some clients, as their server
// counts them, stay below a bound while the server misbehaves, and are at rest afterwards. On Linux, it also
// checks that they are those of a [dial.Dialer].
func (e Engine) testPlateau(t *testing.T) {
	wait := func(over func(time.Duration) bool) {
		for !over(plateauTimeout) {
		}
	}
	for name, lock := range e.Locks {
		t.Run(name, func(t *testing.T) {
			e.plateau(t, false, func(_ *storetest.Proxy, over func(time.Duration) bool) {
				defer lock(t)()
				wait(over)
			})
		})
	}
	t.Run("suspended", func(t *testing.T) {
		e.plateau(t, false, func(_ *storetest.Proxy, over func(time.Duration) bool) {
			for end := false; !end && !over(plateauTimeout); {
				program.Need(t, e.Server.Suspend())
				end = over(2 * plateauTimeout)
				program.Need(t, e.Server.Resume())
			}
		})
	})
	t.Run("held", func(t *testing.T) {
		e.plateau(t, true, func(proxy *storetest.Proxy, over func(time.Duration) bool) {
			proxy.Hold(storetest.ToServer)
			proxy.Hold(storetest.ToClient)
			wait(over)
			proxy.Cut()
			proxy.Resume()
		})
	})
}

// plateau opens the clients, lets fault run, and watches the server. over waits for some time,
// and reports whether the fault must end. held says that the fault hides closed connections
// from the server.
func (e Engine) plateau(t *testing.T, held bool, fault func(proxy *storetest.Proxy, over func(time.Duration) bool)) {
	before := sockets(t, e.Server.Addr) // a driver may leave a connection of an earlier test
	proxy := storetest.NewProxy(t, e.Server.Addr)
	var clients []*plateauClient
	for i := range plateauClients {
		c := &plateauClient{store: e.Open(t, proxy.Addr(), "plateau"), key: fmt.Sprintf("node/%07d", i)}
		Write(t, c.store, c.key+"0", "") // and the table is made
		clients = append(clients, c)
	}
	checkUnheard(t, proxy.Addr())
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	end := func() { stop(); running.Wait() }
	defer end()
	for _, c := range clients {
		running.Go(func() { c.work(ctx) })
	}
	var peak atomic.Int64 // the largest count so far; only the next goroutine writes it
	running.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(plateauPause) {
			peak.Store(max(peak.Load(), int64(sockets(t, e.Server.Addr))))
		}
	})

	begin := time.Now()
	fault(proxy, func(wait time.Duration) bool {
		time.Sleep(wait) // the length of the fault
		return time.Since(begin) >= *plateauTime
	})
	most := before + plateauClients*e.AtMost
	if held {
		most += plateauClients * e.AtMost * int(time.Since(begin)/dial.MaxSilence)
	}
	for _, c := range clients {
		Write(t, c.store, c.key+"0", "")
	}
	end()
	atRest := before + plateauClients*e.AtRest
	Until(t, func(context.Context) error {
		if n := sockets(t, e.Server.Addr); n > atRest {
			return fmt.Errorf("%d connections after the fault, want at most %d", n, atRest)
		}
		return nil
	})
	t.Logf("at most %d connections of %d clients, in %v", peak.Load(), plateauClients, time.Since(begin).Round(time.Second))
	if peak.Load() > int64(most) {
		t.Errorf("%d connections of %d clients, want at most %d", peak.Load(), plateauClients, most)
	}
}

// plateauClient uses a store as a keeper does, without its window: it reads its cell after
// a failure, and writes it.
type plateauClient struct {
	store stores.Store
	key   string
}

func (c *plateauClient) work(ctx context.Context) {
	cell := stores.Cell{Key: c.key}
	var err error = context.Canceled // the cell is not known yet
	for ; ctx.Err() == nil; time.Sleep(plateauPause) {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), plateauTimeout)
		if err != nil {
			cell, err = c.store.Read(call, c.key)
		} else {
			cell.Version, err = c.store.Swap(call, c.key, cell.Version, nil)
		}
		cancel()
	}
}

//go:build unix

package service

import (
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/stores/storetest"
)

var soak = flag.Duration("service.soak", 0, "load the server for so long, and look for growth; by default for some rounds")

// size is what this process holds.
type size struct {
	heap       uint64
	goroutines int
}

func settled() size {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one leaves the contents of pools
	runtime.ReadMemStats(&m)
	return size{m.HeapAlloc, runtime.NumGoroutine()}
}

// grown returns an error if this process holds more than so much more by now.
func (s size) grown(bytes uint64, goroutines int) error {
	now := settled()
	if now.heap > s.heap+bytes || now.goroutines > s.goroutines+goroutines {
		return fmt.Errorf("the heap has grown from %d to %d bytes, and goroutines from %d to %d", s.heap, now.heap, s.goroutines, now.goroutines)
	}
	return nil
}

// Connections of all protocols come, ask and go, again and again. Memory and goroutines do
// not grow from one half of the time to the other.
func TestNoGrowth(t *testing.T) {
	g, err := generator.New(generator.WithNode(1), generator.WithLayout(wide()))
	require.NoError(t, err)
	s := serveHere(t, service.Config{Generator: g, Store: storetest.NewMemory(), Create: created})
	requests := 0
	round := func() {
		var all sync.WaitGroup
		for name, open := range callers {
			for range 4 {
				all.Go(func() {
					c := open(s.addresses)
					defer c.close()
					for range 5 {
						_, err := c.ids(t.Context(), 100)
						assert.NoError(t, err, name)
						_, err = c.number(t.Context(), tickets)
						assert.NoError(t, err, name)
						_, err = c.number(t.Context(), "no-such-sequence")
						assert.Error(t, err, name)
					}
				})
			}
		}
		all.Wait()
		requests += len(callers) * 4 * 5 * 3
	}
	half := func() {
		began := time.Now()
		for n := 0; n < fewer(20) || time.Since(began) < *soak/2; n++ {
			round()
		}
	}
	half()
	before := settled()
	half()
	// A round leaves connections that are being closed.
	require.NoError(t, eventually(t.Context(), func() error { return before.grown(1<<20, 4) }), "after %d requests", requests)
	after := settled()
	t.Logf("%d requests; the heap had %d bytes and has %d, goroutines %d and %d", requests, before.heap, after.heap, before.goroutines, after.goroutines)
}

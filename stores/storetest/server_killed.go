package storetest

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores"
)

// The server is killed again and again while a client counts up, and another is
// idle.
func testKilled(t *testing.T, s Server) {
	const kills = 3
	name := fresh()
	writer, idle := client{t, s.Open(t, s.Addr, name)}, client{t, s.Open(t, s.Addr, name)}
	idle.read(node(1))

	c := &counter{client: writer, acked: make(chan int, 1), stop: make(chan struct{})}
	var counting sync.WaitGroup
	counting.Go(c.count)
	defer counting.Wait()
	defer close(c.stop)
	for kill := range kills {
		// At different moments of the writes.
		for range 5 * (kill + 1) {
			c.wait(t)
		}
		if err := s.Kill(); err != nil {
			t.Fatalf("Kill: %v", err)
		}
		if err := s.Start(); err != nil {
			t.Fatalf("Start: %v", err)
		}
		atLeast := c.wait(t)
		is := recovered(t, idle, node(1))
		if n, err := strconv.Atoi(string(is.Value)); err != nil || n < atLeast {
			t.Fatalf("the idle client reads %v after %d was acknowledged", show(is), atLeast)
		}
	}
}

// counter counts up the number in a cell, and tells of each acknowledged write.
type counter struct {
	client
	acked chan int
	stop  chan struct{}
}

func (c *counter) wait(t *testing.T) int {
	t.Helper()
	select {
	case n, ok := <-c.acked:
		if !ok {
			t.FailNow() // count has said why
		}
		return n
	case <-time.After(2 * recovery):
		t.Fatalf("no write was acknowledged for %v", 2*recovery)
		return 0
	}
}

func (c *counter) count() {
	defer close(c.acked)
	cell, acked := absent(1), 0
	for {
		next, err := c.once(cell, acked+1)
		if err != nil {
			// Its outcome is unknown. The last one's is not.
			is, ok := c.look()
			if !ok {
				return
			}
			n, err := strconv.Atoi(string(is.Value))
			if acked == 0 && is.Version == 0 {
				n, err = 0, nil
			}
			if err != nil || n < acked || n > acked+1 {
				c.t.Errorf("%d was acknowledged, %d written, and the cell is %v", acked, acked+1, show(is))
				return
			}
			cell, acked = is, n
			continue
		}
		cell, acked = next, acked+1
		select {
		case c.acked <- acked:
		case <-c.stop:
			return
		}
	}
}

func (c *counter) once(cell stores.Cell, n int) (stores.Cell, error) {
	ctx, cancel := context.WithTimeout(context.Background(), brief)
	defer cancel()
	value := []byte(strconv.Itoa(n))
	version, err := c.Swap(ctx, cell.Key, cell.Version, value)
	return stores.Cell{Key: cell.Key, Version: version, Value: value}, err
}

// look reads until it can, or until the test has ended.
func (c *counter) look() (stores.Cell, bool) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), brief)
		cell, err := c.Read(ctx, node(1))
		cancel()
		if err == nil {
			return cell, true
		}
		select {
		case <-c.stop:
			return cell, false
		default:
			pause()
		}
	}
}

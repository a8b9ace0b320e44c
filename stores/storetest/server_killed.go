package storetest

import (
	"context"
	"errors"
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
	cell, acked := absent(1), 0
	counted := func(c client) stores.Cell {
		is := recovered(t, c, cell.Key)
		n, err := strconv.Atoi(string(is.Value))
		if acked == 0 && is.Version == 0 {
			n, err = 0, nil
		}
		if err != nil || n < acked || n > acked+1 {
			t.Fatalf("%d was acknowledged, %d written at most, and a client reads %v", acked, acked+1, show(is))
		}
		acked = n
		return is
	}
	count := func() {
		ctx, cancel := context.WithTimeout(context.Background(), brief)
		defer cancel()
		value := []byte(strconv.Itoa(acked + 1))
		version, err := writer.Swap(ctx, cell.Key, cell.Version, value)
		if err != nil {
			cell = counted(writer) // the outcome of this one is unknown; that of the last is not
			return
		}
		cell, acked = stores.Cell{Key: cell.Key, Version: version, Value: value}, acked+1
	}
	var killing sync.WaitGroup
	defer killing.Wait()
	for kill := range kills {
		for range 5 * (kill + 1) { // at different moments of the writes
			count()
		}
		started := make(chan error, 1)
		killing.Go(func() {
			err := s.Kill()
			started <- errors.Join(err, s.Start())
		})
		for running := true; running; {
			select {
			case err := <-started:
				if err != nil {
					t.Fatalf("Kill and Start: %v", err)
				}
				running = false
			default:
				count()
			}
		}
		for before, begin := acked, time.Now(); acked == before; count() {
			if time.Since(begin) > 2*recovery {
				t.Fatalf("no write was acknowledged for %v", 2*recovery)
			}
		}
		counted(idle)
	}
}

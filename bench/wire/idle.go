package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/bench/results"
)

// idleSteps is in how many steps the idle connections are opened. Each is a sample.
const idleSteps = 10

// idle is the memory of the server for each connection, in KiB, one sample per step.
type idle struct {
	each           int // connections of a step
	used, resident []float64
	goroutines     float64 // per connection
	err            error
}

// measureIdle opens connections to the RESP port, step by step, each of which asks for one ID
// and then does nothing, and looks at the server's memory after each step.
func measureIdle(ctx context.Context, c *child, each int) idle {
	i := idle{each: each}
	conns := make([]net.Conn, 0, each*idleSteps)
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	first, err := c.ask(askMemory)
	before := first
	residentBefore, unknown := c.resident()
	for range idleSteps {
		for range each {
			if i.err = errors.Join(err, ctx.Err()); i.err != nil {
				return i
			}
			var conn net.Conn
			if conn, err = connect(ctx, c.RESP); err == nil {
				conns = append(conns, conn)
			}
		}
		var after usage
		if after, err = c.ask(askMemory); err != nil {
			i.err = err
			return i
		}
		i.used = append(i.used, kib(before.Memory, after.Memory)/float64(each))
		i.goroutines = float64(after.Goroutines-first.Goroutines) / float64(len(conns))
		before = after
		if resident, err := c.resident(); unknown == nil && err == nil {
			i.resident = append(i.resident, kib(residentBefore, resident)/float64(each))
			residentBefore = resident
		}
	}
	return i
}

func kib(before, after uint64) float64 { return (float64(after) - float64(before)) / 1024 }

// connect opens a connection, and takes an ID by it.
func connect(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	_, err = conn.Write([]byte("*1\r\n$2\r\nID\r\n"))
	if err == nil {
		var line string
		if line, err = bufio.NewReaderSize(conn, 64).ReadString('\n'); err == nil && !strings.HasPrefix(line, "$") {
			err = fmt.Errorf("RESP: the answer to ID is %q", line)
		}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (i idle) table() results.Table {
	row := results.Row{Name: "RESP, idle", Group: results.Ours, Cells: []results.Cell{{Samples: i.used}, {Samples: i.resident}, {}}}
	if i.err != nil {
		row.Note = (&subject{err: i.err}).reason()
	} else {
		row.Cells[2].Samples = []float64{i.goroutines}
	}
	return results.Table{ID: "service-idle", Title: fmt.Sprintf("Memory of the server for each of %s connections", results.Figure(float64(i.each*idleSteps))), RowName: "connection", Detail: true,
		Columns: []results.Column{
			{ID: "used", Title: "heap and stacks", Unit: "KiB", Better: results.Less},
			{ID: "resident", Title: "resident", Unit: "KiB", Better: results.Less},
			{ID: "goroutines", Title: "goroutines", Better: results.Less},
		}, Rows: []results.Row{row}}
}

func (i idle) target() results.Target {
	return results.Target{ID: "service-idle", Unit: "KiB", Want: 20, AtMost: true, Got: results.Cell{Samples: i.used},
		Text: fmt.Sprintf("%s idle RESP connections: at most 20 KiB of the server's memory for each", results.Figure(float64(i.each*idleSteps)))}.Judge(nil)
}

// idleConnections is how many connections of a step there are.
func idleConnections(run *measure.Run) int {
	if run.Quick {
		return 50
	}
	return 1000
}

package resp

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

// half is a connection of which one direction can be closed.
type half struct{ net.Conn }

func (half) CloseWrite() error { return nil }

// The end of a drain does not wait for a client that was told an error and still has time to read it.
func TestDrainOfAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		here, there := net.Pipe()
		defer there.Close()
		b.start(half{here})
		go func() { _, _ = io.WriteString(there, array("PING")+"*1\r\n*1\r\n") }()
		_, err := io.ReadFull(there, make([]byte, 10)) // PONG, and the begin of an error
		require.NoError(t, err)
		go io.Copy(io.Discard, there)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		_ = b.Shutdown(ctx)
		assert.LessOrEqual(t, time.Since(began), 20*time.Millisecond)
	})
}

// The wake of a drain that comes late does not cut off a client that still reads its answers.
func TestLateWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := newConn(newBed(t, nil).Server, half{here})
		c.linger = true
		began := time.Now()
		time.AfterFunc(50*time.Millisecond, c.wake)
		c.close()
		assert.InDelta(t, time.Second, time.Since(began), float64(20*time.Millisecond))
	})
}

// A drain that begins as a client sends its next pipeline does not cut off the answers that this
// client still reads: unread bytes would.
func TestDrainReadsWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		here, there := net.Pipe()
		b.start(half{here})
		_, err := io.WriteString(there, "PING\r\n")
		require.NoError(t, err)
		_, err = io.ReadFull(there, make([]byte, len("+PONG\r\n")))
		require.NoError(t, err)
		synctest.Wait()
		b.drain()
		synctest.Wait()
		_, err = io.WriteString(there, "PING\r\n")
		require.NoError(t, err)
		require.NoError(t, there.Close())
		require.NoError(t, b.Shutdown(t.Context()))
	})
}

// TestAllocations: in steady state a command for an ID or a number that is there allocates
// nothing.
func TestAllocations(t *testing.T) {
	b := newBed(t, func(c *issuer.Config) {
		c.Rules[0].Definition.MinStep = 1e6 // a refill allocates
	})
	discard := &script{}
	c := newConn(b.Server, discard)
	c.out.try, c.client = discard.Write, b.issuer.Anyone()
	c.take()
	for _, in := range []string{array("ID"), "id\r\n", array("IDS", "50"), array("PING"), array("INCR", "orders"), array("INCRBY", "orders", "123")} {
		pipeline := strings.Repeat(in, 16)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			c.have = copy(c.buffer.in, pipeline)
			buffer := c.buffer
			if err := c.answer(); err != nil {
				panic(err)
			}
			c.buffer = buffer
			discard.written.Reset()
		}), in)
	}
}

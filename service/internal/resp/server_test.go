package resp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

// newServer returns a server without a listener. Sequences whose names begin with "o" are made when they are asked for.
// Package service tests with listeners.
func newServer(t testing.TB) *Server {
	layout, err := snowflake.ParseLayout("41/4/18") // no command waits for the next millisecond
	require.NoError(t, err)
	layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // testing/synctest begins in 2000
	g, err := generator.New(generator.WithNode(3), generator.WithLayout(layout))
	require.NoError(t, err)
	i := issuer.New(issuer.Config{
		Generator: g, Store: storetest.NewMemory(), Logger: slog.New(slog.DiscardHandler),
		Rules: []issuer.Rule{{Prefix: "o", Definition: sequence.Definition{MinStep: 1e6}}}, // a refill allocates
		Serve: seam.Serve{MaxBatch: 100, MaxNumbers: 1000, MaxSequences: 10, Timeout: time.Second, IdleTimeout: time.Hour, ReadTimeout: 10 * time.Second},
	})
	t.Cleanup(func() { assert.NoError(t, errors.Join(i.Close(context.Background()), g.Close())) })
	return New(i)
}

// half is a connection of which one direction can be closed.
type half struct{ net.Conn }

func (half) CloseWrite() error { return nil }

// A drain cuts off neither a client that sends its next pipeline meanwhile nor one that was told an error: both still read
// their replies, which unread bytes would cut off. Its end does not wait for them, nor for one that reads nothing.
func TestDrain(t *testing.T) {
	for _, broken := range []string{"", "*1\r\n*1\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			here, there := net.Pipe()
			defer there.Close()
			s.start(half{here})
			go func() { _, _ = io.WriteString(there, servicetest.Command("PING")+broken) }()
			_, err := io.ReadFull(there, make([]byte, len("+PONG\r\n")))
			require.NoError(t, err)
			go io.Copy(io.Discard, there)
			other, unread := net.Pipe()
			defer unread.Close()
			s.start(other)
			_, err = io.WriteString(unread, servicetest.Command("PING"))
			require.NoError(t, err)
			synctest.Wait()
			s.drain()
			time.Sleep(time.Second / 2)
			_, err = io.WriteString(there, servicetest.Command("PING"))
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			began := time.Now()
			_ = s.Shutdown(ctx)
			assert.LessOrEqual(t, time.Since(began), 20*time.Millisecond)
		})
	}
}

// updated is a connection that answers whatever it reads by a megabyte, as TLS does an update of a key by a record.
type updated struct{ net.Conn }

func (u updated) Read(p []byte) (int, error) {
	_, _ = u.Write(make([]byte, 1<<20))
	return u.Conn.Read(p)
}

// What TLS writes by itself counts as unread, too: a client that reads nothing is read no further, and cut off.
func TestUnreadUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := newConn(newServer(t), half{here})
		c.nc = updated{c.out}
		go func() { c.serve(); c.close() }()
		megabytes := 0
		for err := error(nil); err == nil && megabytes < 50; megabytes++ {
			_, err = io.WriteString(there, "*0\r\n") // a command without a reply
		}
		assert.InDelta(t, limit.Replies>>20, megabytes, 3)
	})
}

// In steady state a command for an ID or a number that is there allocates nothing, and a connection that waits has no buffer.
func TestAllocations(t *testing.T) {
	b := newServer(t)
	c := newConn(b, nil)
	c.out.try, c.client = func(p []byte) (int, error) { return len(p), nil }, b.issuer.Anyone()
	c.buffer = b.buffers.Get().(*buffer)
	for _, in := range [][]string{{"ID"}, {"id"}, {"IDS", "50"}, {"PING"}, {"INCR", "orders"}, {"INCRBY", "orders", "123"}} {
		pipeline := strings.Repeat(servicetest.Command(in...), 16)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			c.have = copy(c.buffer.in, pipeline)
			buffer := c.buffer
			if err := c.answer(); err != nil {
				panic(err)
			}
			if c.buffer != nil {
				panic("the connection has a buffer while it waits")
			}
			c.buffer = buffer
		}), in)
	}
}

// stalled is an outbox whose kernel takes the first bytes, and whose client reads none.
func stalled(t *testing.T, all, share *atomic.Int64) (*outbox, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	o := &outbox{Conn: ours, ctx: t.Context(), timeout: 10 * time.Second, all: all, share: share, known: true}
	o.changed.L = &o.mu
	return o, theirs
}

// No write overtakes those before it, although the kernel would take it at once; and each ends at once.
func TestOutboxKeepsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tried bytes.Buffer
		o, peer := stalled(t, new(atomic.Int64), new(atomic.Int64))
		o.try = func(p []byte) (int, error) { return tried.Write(p[:len(p)/2]) }
		_, err := o.Write([]byte("ab"))
		require.NoError(t, err)
		synctest.Wait() // the writer waits for the client
		o.try = tried.Write
		for _, text := range []string{"c", "d", strings.Repeat("e", 1<<20)} {
			_, err = o.Write([]byte(text))
			require.NoError(t, err)
		}
		assert.Equal(t, "a", tried.String())
		got := make([]byte, 3)
		for n := 0; n < len(got); {
			k, err := peer.Read(got[n:])
			require.NoError(t, err)
			n += k
		}
		assert.Equal(t, "bcd", string(got))
		require.NoError(t, peer.Close())
		require.Error(t, o.end())
		assert.Zero(t, o.all.Load())
	})
}

// However many clients do not read, the next has room for a pipeline, and nobody has more than its share. A client that
// takes nothing is cut off in time; while it sends, and there is room, it has more.
func TestOutboxShares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := new(atomic.Int64)
		fill := func(share *atomic.Int64) (took int64) {
			o, _ := stalled(t, all, share)
			room := func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.kept <= o.most() }
			for part := make([]byte, limit.Flush); room(); took += limit.Flush {
				_, err := o.Write(part)
				require.NoError(t, err)
			}
			return took
		}
		first := new(atomic.Int64)
		assert.InDelta(t, limit.Replies, fill(first), limit.Flush)
		assert.InDelta(t, limit.LeastReplies, fill(first), limit.Flush+1, "another connection of the client, which has half of all")
		assert.InDelta(t, (limit.AllReplies-limit.Replies)/2, fill(new(atomic.Int64)), 3*limit.Flush, "another client has half of what is left")
		for range 20 {
			assert.GreaterOrEqual(t, fill(new(atomic.Int64)), int64(limit.LeastReplies))
		}
		stranger, _ := stalled(t, all, new(atomic.Int64))
		stranger.known = false
		assert.EqualValues(t, limit.StrangerReplies, stranger.most())

		sends, _ := stalled(t, all, new(atomic.Int64))
		began := time.Now()
		for range 5 {
			_, err := sends.Write([]byte("PONG"))
			require.NoError(t, err)
			time.Sleep(sends.timeout / 2)
		}
		require.ErrorIs(t, sends.end(), os.ErrDeadlineExceeded)
		assert.Equal(t, 3*sends.timeout, time.Since(began))
		_, err := sends.Write([]byte("PONG"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		synctest.Wait()
		assert.Zero(t, all.Load(), "all were cut off, and nothing is kept for them")
	})
}

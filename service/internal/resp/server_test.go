package resp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/stores/storetest"
)

// read returns n bytes of replies.
func read(t testing.TB, c net.Conn, n int) string {
	t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	require.NoError(t, err)
	return string(b)
}

func write(t testing.TB, c net.Conn, in string) {
	t.Helper()
	_, err := io.WriteString(c, in)
	require.NoError(t, err)
}

// ended checks that the server has closed the connection.
func ended(t testing.TB, c net.Conn) {
	t.Helper()
	_, err := c.Read(make([]byte, 1))
	assert.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "%v", err)
}

// TestSplit sends a pipeline byte by byte, over a descriptor and without one.
func TestSplit(t *testing.T) {
	t.Parallel()
	in := array("PING") + "ping x\r\n" + array("ECHO", "a\r\nb") + array("INCRBY", "o", "5")
	const want = "+PONG\n$1\nx\n$4\na\nb\n:5\n"
	matches(t, want, newBed(t, nil).run(strings.Split(in, "")...))
	for i := range in {
		matches(t, want, newBed(t, nil).run(in[:i], in[i:]))
	}
	c := newBed(t, nil).listen(t)()
	require.NoError(t, c.(*net.TCPConn).SetNoDelay(true))
	go func() {
		for i := range in {
			if _, err := io.WriteString(c, in[i:i+1]); err != nil {
				return
			}
		}
	}()
	matches(t, want, read(t, c, len(want)+strings.Count(want, "\n")))
}

// TestHugePipeline sends more commands than any buffer holds, and half-closes.
func TestHugePipeline(t *testing.T) {
	t.Parallel()
	const commands = 200_000
	c := newBed(t, nil).listen(t)()
	out := exchange(t, c, strings.Repeat(array("PING"), commands))
	assert.True(t, out == strings.Repeat("+PONG\r\n", commands), "%d bytes", len(out))
}

// TestBadInput sends what no client should. The client has its error although it still sends,
// and another client is answered.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	dial := b.listen(t)
	other := dial()
	for _, test := range []struct{ in, want string }{
		{strings.Repeat("*1\r\n", 100_000), "-ERR Protocol error: expected '$', got '*'\n"},
		{array("PING") + "*2147483648\r\n" + array("INCR", "o"), "+PONG\n-ERR Protocol error: 2147483648 arguments: at most 64\n"},
		{"*1\r\n$2147483647\r\n" + strings.Repeat("x", 500_000), "-ERR Protocol error: 2147483647 bytes in an argument: at most 4096\n"},
		{strings.Repeat("x", 500_000), "-ERR Protocol error: a line of more than 4096 bytes\n"},
		{"*64\r\n" + strings.Repeat("$4096\r\n"+strings.Repeat("x", 4096)+"\r\n", 64), "-ERR Protocol error: a command of more than 16384 bytes\n"},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\nINCR o\r\n" + array("INCR", "o"), "-ERR Protocol error: this is the port of the Redis protocol, not of HTTP\n"},
		{"GET /o HTTP/1.1\r\nHost: localhost\r\n\r\n" + array("INCR", "o"), "-ERR Protocol error: this is the port of the Redis protocol, not of HTTP\n"},
	} {
		matches(t, test.want, exchange(t, dial(), test.in))
		write(t, other, array("PING"))
		assert.Equal(t, "+PONG\r\n", read(t, other, 7))
	}
	// Nothing of a page's requests was carried out.
	write(t, other, array("INCR", "o"))
	assert.Equal(t, ":1\r\n", read(t, other, 4))
}

// held is a store whose writes wait until the test ends them.
func held(m *storetest.Memory) (began <-chan struct{}, release func()) {
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	m.Before = func(ctx context.Context, op storetest.Op) storetest.Fault {
		if op.Kind == storetest.OpSwap {
			entered <- struct{}{}
			select {
			case <-leave:
			case <-ctx.Done():
			}
		}
		return storetest.None
	}
	return entered, func() { close(leave) }
}

// flood is a connection whose client sends as fast as it is read, and reads all replies.
type flood struct {
	net.Conn
	command string
	read    chan struct{} // receives after a read
}

func (f flood) Read(p []byte) (int, error) {
	select {
	case f.read <- struct{}{}:
	default:
	}
	for n := 0; n < len(p); {
		n += copy(p[n:], f.command)
	}
	return len(p), nil
}

func (flood) Write(p []byte) (int, error) { return len(p), nil }

// A client that never stops sending does not hold up a drain, whether its commands have replies
// or not.
func TestDrainOfAFlood(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{"no replies": "\n", "replies": "PING\r\n", "large replies": "IDS 10000\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, nil)
			here, there := net.Pipe()
			defer there.Close()
			f := flood{here, command, make(chan struct{})}
			b.start(f)
			<-f.read
			require.NoError(t, b.Shutdown(t.Context()))
		})
	}
}

// A drain that cuts a client off loses no answer of a command that was carried out, although the
// client reads slowly.
func TestDrainLosesNoAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	c := b.listen(t)()
	go func() {
		_, _ = io.WriteString(c, strings.Repeat(array("INCRBY", "o", "1")+array("ECHO", strings.Repeat("x", 400)), 20_000))
	}()
	r := bufio.NewReader(c)
	answered := uint64(0)
	var ended error
	drained := make(chan error, 1)
	for lines := 0; ended == nil; lines++ {
		line, err := r.ReadString('\n')
		if strings.HasPrefix(line, ":") {
			answered++
		}
		if ended = err; lines == 100 {
			go func() { drained <- b.Shutdown(t.Context()) }()
			<-b.draining.Done()
			time.Sleep(lastRead + 100*time.Millisecond) // the client is slow
		}
	}
	assert.ErrorIs(t, ended, io.EOF)
	assert.NoError(t, <-drained)
	assert.Equal(t, b.issuer.OpenTo(b.issuer.Anyone())[0].Stats().Issued, answered)
}

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
		go write(t, there, array("PING")+"*1\r\n*1\r\n")
		read(t, there, 10) // PONG, and the begin of an error
		go io.Copy(io.Discard, there)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		_ = b.Shutdown(ctx)
		assert.Zero(t, time.Since(began))
	})
}

// A drain lets the pipeline that runs end, and the command that has begun. The drain of idle
// connections, and of those that take too long, package service tests for all protocols.
func TestShutdown(t *testing.T) {
	t.Parallel()
	t.Run("a pipeline", func(t *testing.T) {
		b := newBed(t, nil)
		began, release := held(b.store)
		dial := b.listen(t)
		idle, busy := dial(), dial()
		write(t, idle, array("PING"))
		read(t, idle, 7)
		write(t, busy, array("PING")+array("INCR", "o")+array("ECHO", "end"))
		<-began
		down := make(chan error, 1)
		go func() { down <- b.Shutdown(context.Background()) }()
		ended(t, idle)
		release()
		assert.Equal(t, "+PONG\r\n:1\r\n$3\r\nend\r\n", read(t, busy, 20))
		ended(t, busy)
		assert.NoError(t, <-down)
		assert.NoError(t, b.Shutdown(context.Background()), "again")
	})
	t.Run("half a command", func(t *testing.T) {
		b := newBed(t, nil)
		c := b.listen(t)()
		write(t, c, array("PING")+"PI")
		read(t, c, 7)
		down := make(chan error, 1)
		go func() { down <- b.Shutdown(context.Background()) }()
		for !b.closing() {
			runtime.Gosched()
		}
		write(t, c, "NG\r\n")
		assert.Equal(t, "+PONG\r\n", read(t, c, 7))
		ended(t, c)
		assert.NoError(t, <-down)
	})
	t.Run("before Serve", func(t *testing.T) {
		b := newBed(t, nil)
		assert.NoError(t, b.Shutdown(context.Background()))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		assert.NoError(t, b.Serve(l))
		_, err = l.Accept()
		assert.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestMemory: a connection that waits costs at most 20 KiB, with all of it that is in this
// process: the client's end as well.
func TestMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own for each object")
	}
	const connections, most = 500, 20 << 10
	dial := newBed(t, nil).listen(t)
	used := func() uint64 {
		runtime.GC()
		runtime.GC() // empties the pool of buffers
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	open := func() {
		c := dial()
		write(t, c, array("IDS", "100")+array("INCR", "o")+array("INFO")+array("ECHO", "the end"))
		for in := ""; !strings.HasSuffix(in, "the end\r\n"); {
			b := make([]byte, 8192)
			n, err := c.Read(b)
			require.NoError(t, err)
			in += string(b[:n])
		}
	}
	open()
	before := used()
	for range connections {
		open()
	}
	each := (int64(used()) - int64(before)) / connections
	t.Logf("%d bytes for each connection", each)
	assert.Less(t, each, int64(most))
	assert.Positive(t, each)
}

// TestAllocations: in steady state a command for an ID or a number that is there allocates
// nothing.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	b := newBed(t, func(c *issuer.Config, _ *Limits) {
		c.Create[0].Definition = sequence.Definition{MinStep: 1e6} // a refill allocates
	})
	c := newConn(b.Server, &script{})
	c.take()
	discard := c.nc.(*script)
	for _, in := range []string{array("ID"), "id\r\n", array("IDS", "50"), array("PING"), array("INCR", "orders"), array("INCRBY", "orders", "3")} {
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

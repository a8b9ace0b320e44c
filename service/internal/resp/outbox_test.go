package resp

import (
	"bytes"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service/internal/limit"
)

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

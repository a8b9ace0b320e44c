package service

import (
	"crypto/sha256"
	"io"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// TestRoom: the limits hold for a listener and for all together, and a flood of connections leaves
// descriptors for the store. A connection that is unknown makes room for a new one, the longest
// unknown first, and ends in time. One that is known stays until
// its client is gone, and the new ones are closed.
func TestRoom(t *testing.T) {
	assert.EqualValues(t, 1024-spareFiles, maxConnections(1024))
	assert.EqualValues(t, 50, maxConnections(100))
	assert.Positive(t, maxConnections(math.MaxInt64))
	gen, err := generator.New(generator.WithNode(1))
	require.NoError(t, err)
	defer func() { assert.NoError(t, gen.Close()) }()
	i := issuer.New(issuer.Config{Generator: gen, Clients: []*issuer.Client{issuer.NewClient("shop", sha256.Sum256(nil), issuer.Rights{IDs: true})}})
	client, err := i.Authenticate("", false)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		const patience = 10 * time.Second
		all := &total{most: 3}
		resp := (&limited{protocol: issuer.RESP, issuer: i, most: 2, patience: patience, all: all}).limit()
		grpc := (&limited{protocol: issuer.GRPC, issuer: i, most: 2, patience: patience, all: all}).limit()
		type connection struct {
			net.Conn             // of the server
			client   net.Conn    // the other end
			ended    func() bool // whether the server has closed it
		}
		connect := func(l *limited) connection {
			ours, theirs := net.Pipe()
			closed := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, ours)
				close(closed)
			}()
			t.Cleanup(func() { _ = ours.Close() })
			return connection{l.enter(theirs), ours, func() bool {
				synctest.Wait()
				select {
				case <-closed:
					return true
				default:
					return false
				}
			}}
		}
		known := func(c connection) { issuer.PeerOf(c.Conn).Known(client) }
		open := func() [3]int { return [3]int{len(resp.open), len(grpc.open), int(all.open)} }

		first, second := connect(resp), connect(resp)
		third := connect(resp)
		assert.True(t, first.ended(), "unknown for longest")
		assert.False(t, second.ended() || third.ended())
		time.Sleep(patience / 2)
		fourth, fifth := connect(grpc), connect(grpc)
		assert.True(t, second.ended(), "unknown for longest, on any listener")
		assert.False(t, third.ended() || fourth.ended() || fifth.ended())
		assert.Equal(t, [3]int{1, 2, 3}, open())
		known(fourth)
		time.Sleep(patience / 2)
		assert.True(t, third.ended(), "unknown for too long")
		assert.False(t, fourth.ended() || fifth.ended())
		known(fifth)
		time.Sleep(patience)
		assert.False(t, fourth.ended() || fifth.ended(), "known")
		sixth := connect(grpc)
		assert.Nil(t, sixth.Conn, "no room")
		assert.True(t, sixth.ended())

		seventh := connect(resp)
		known(seventh)
		eighth := connect(resp)
		assert.True(t, eighth.ended(), "no room")
		assert.Equal(t, [3]int{1, 2, 3}, open())
		for _, c := range []connection{fourth, fifth, seventh} {
			require.NoError(t, c.Close())
			_ = c.Close() // as servers do
		}
		assert.Equal(t, [3]int{}, open())

		ninth := connect(resp)
		known(ninth)
		i.SetClients(nil)
		tenth := connect(resp)
		resp.forget()
		resp.forget()
		known(tenth)
		all.mu.Lock()
		assert.Equal(t, 2, resp.unknown.Len(), "their client is gone, also as it becomes known")
		all.mu.Unlock()
		time.Sleep(patience)
		assert.True(t, ninth.ended() && tenth.ended())
		assert.Zero(t, resp.unknown.Len()+grpc.unknown.Len())
		resp.drain()
		assert.True(t, connect(resp).ended(), "it came after the drain began")
	})
}

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
		var peers, conns []net.Conn // in the order in which they came
		connect := func(l *limited) {
			ours, theirs := net.Pipe()
			require.NoError(t, ours.SetReadDeadline(time.Now()))
			peers, conns = append(peers, ours), append(conns, l.enter(theirs))
		}
		known := func(n int) { issuer.PeerOf(conns[n-1]).Known(client) }
		open := func(why string, want ...int) {
			t.Helper()
			synctest.Wait()
			var open []int
			for n, peer := range peers {
				if _, err := peer.Read(make([]byte, 1)); err != io.EOF {
					open = append(open, n+1)
				}
			}
			assert.Equal(t, want, open, why)
			all.mu.Lock()
			defer all.mu.Unlock()
			assert.Equal(t, []int{len(want), len(want)}, []int{len(resp.open) + len(grpc.open), int(all.open)})
		}

		connect(resp)
		connect(resp)
		connect(resp)
		open("the first was unknown for longest", 2, 3)
		time.Sleep(patience / 2)
		connect(grpc)
		connect(grpc)
		open("the second was unknown for longest, on any listener", 3, 4, 5)
		known(4)
		time.Sleep(patience / 2)
		open("the third was unknown for too long", 4, 5)
		known(5)
		time.Sleep(patience)
		connect(grpc)
		open("both are known, so there is no room", 4, 5)
		connect(resp)
		known(7)
		connect(resp)
		open("there is no room on any listener", 4, 5, 7)
		for _, n := range []int{4, 5, 7} {
			require.NoError(t, conns[n-1].Close())
			_ = conns[n-1].Close() // as servers do
		}
		open("all were closed")

		connect(resp)
		known(9)
		i.SetClients(nil)
		connect(resp)
		resp.forget()
		resp.forget()
		known(10)
		open("their client is gone, also as it becomes known", 9, 10)
		time.Sleep(patience)
		open("and so they end in time")
		assert.Zero(t, resp.unknown.Len()+grpc.unknown.Len())
		resp.drain()
		connect(resp)
		open("it came after the drain began")
	})
}

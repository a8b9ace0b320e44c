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
	"github.com/tickflake/tickflake/service/internal/limit"
)

// TestRoom: strangers have a pool of their own, of which the oldest goes for the newest and nobody stays for long, so that
// those who are known always find their room: up to the limit of a listener, and of all. Who is known stays until its
// client is gone.
func TestRoom(t *testing.T) {
	for _, files := range []int64{1, 100, 1024, 1 << 20, math.MaxInt64} {
		strangers, known := spread(files, 3)
		assert.Positive(t, strangers)
		assert.Positive(t, known)
		if files > 100 {
			assert.LessOrEqual(t, int64(3*strangers)+known+limit.SpareFiles, files, "a flood leaves descriptors for the store")
		}
	}
	gen, err := generator.New(generator.WithNode(1))
	require.NoError(t, err)
	defer func() { assert.NoError(t, gen.Close()) }()
	i := issuer.New(issuer.Config{Generator: gen, Clients: []*issuer.Client{
		issuer.NewClient("shop", sha256.Sum256(nil), issuer.Rights{IDs: true, MaxConnections: 2}), issuer.NewClient("blog", sha256.Sum256([]byte("b")), issuer.Rights{IDs: true}),
	}})
	client := make(map[string]*issuer.Client)
	for name, token := range map[string]string{"shop": "", "blog": "b"} {
		client[name], err = i.Authenticate(token, false)
		require.NoError(t, err)
	}
	synctest.Test(t, func(t *testing.T) {
		const patience, age = 10 * time.Second, time.Minute
		all := &total{most: 4}
		listener := func(p issuer.Protocol) *limited {
			return &limited{protocol: p, issuer: i, most: 3, strangers: 2, patience: patience, age: age, all: all, open: make(map[*counted]struct{})}
		}
		resp, grpc := listener(issuer.RESP), listener(issuer.GRPC)
		var peers, conns []net.Conn // in the order in which they came
		connect := func(l *limited) int {
			ours, theirs := net.Pipe()
			require.NoError(t, ours.SetReadDeadline(time.Now()))
			peers, conns = append(peers, ours), append(conns, l.enter(theirs))
			return len(conns)
		}
		known := func(n int, name string) error { return issuer.PeerOf(conns[n-1]).Known(client[name]) }
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
			count, counted := 0, 0
			for _, l := range []*limited{resp, grpc} {
				l.mu.Lock()
				count, counted = count+len(l.open), counted+l.known
				l.mu.Unlock()
			}
			assert.Equal(t, []int{len(want), int(all.open.Load())}, []int{count, counted})
		}

		for range 3 {
			connect(resp)
		}
		connect(grpc)
		open("the first was the oldest stranger of its listener", 2, 3, 4)
		require.NoError(t, known(2, "shop"))
		require.NoError(t, known(3, "shop"))
		require.NoError(t, known(3, "shop"), "again")
		require.ErrorContains(t, known(4, "shop"), "client shop has its largest number of connections open, 2")
		require.NoError(t, known(4, "blog"))
		require.ErrorContains(t, known(4, "shop"), "2", "it stays that of the other")
		require.NoError(t, known(3, "blog"))
		require.NoError(t, known(4, "shop"), "there is room since then")
		require.NoError(t, known(connect(resp), "blog"))
		open("they stay", 2, 3, 4, 5)
		require.ErrorContains(t, known(connect(resp), "blog"), "the server has its largest number", "of its listener")
		require.ErrorContains(t, known(connect(grpc), "blog"), "the server has its largest number", "of all")
		time.Sleep(patience - time.Nanosecond)
		open("strangers have their time", 2, 3, 4, 5, 6, 7)
		time.Sleep(time.Nanosecond)
		open("and no more", 2, 3, 4, 5)
		require.NoError(t, conns[4].Close())
		_ = conns[4].Close() // as servers do
		open("one was closed", 2, 3, 4)
		assert.False(t, issuer.PeerOf(conns[1]).Old())
		time.Sleep(2 * age)
		assert.True(t, issuer.PeerOf(conns[1]).Old())

		shop := client["shop"]
		i.SetClients([]*issuer.Client{issuer.NewClient("blog", sha256.Sum256([]byte("b")), issuer.Rights{IDs: true})})
		require.Error(t, known(connect(grpc), "shop"), "it is gone")
		resp.forget()
		grpc.forget()
		resp.forget()
		open("their client is gone", 2, 3, 4, 8)
		time.Sleep(patience)
		open("and so they end in time", 3)
		assert.Error(t, shop.Join())
		resp.drain()
		connect(resp)
		open("it came after the drain began, and one had not asked")
		assert.Zero(t, resp.unknown.Len()+grpc.unknown.Len())
	})
}

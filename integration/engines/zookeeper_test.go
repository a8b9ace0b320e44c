package engines

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
	_ "github.com/tickflake/tickflake/stores/zookeeper"
)

// A server starts sooner with these, and there are many starts.
func init() { _ = os.Setenv("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1") }

// quiet drops the driver's log.
var quiet = log.New(io.Discard, "", 0)

// zkConn connects with a session that ends soon after its connection.
func zkConn(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, 4*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	s := servers.For(t, servers.ZooKeeper)
	conn := zkConn(t, s.Addr)
	e := Engine{
		Name: "zookeeper at " + s.Addr, Server: s,
		Damage: func(t testing.TB, namespace, key, text string) {
			_, err := zkConn(t, s.Addr).Set("/"+namespace+"/"+strings.ReplaceAll(key, "/", "+"), []byte(text), -1)
			require.NoError(t, err)
		},
		Delete: map[string]func(testing.TB, string, string){"deleted": func(t testing.TB, namespace, key string) {
			require.NoError(t, zkConn(t, s.Addr).Delete("/"+namespace+"/"+strings.ReplaceAll(key, "/", "+"), -1))
		}},
		TLS:    func(url string) string { return strings.Replace(url, "zk://", "zks://u:p@", 1) },
		AtRest: 1, AtMost: 2,
	}
	t.Run("own", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"chroot": func(t *testing.T) {
				Works(t, Open(t, "zk://"+s.Addr+"/some/where?namespace=x"))
			},
			"by hand":         func(t *testing.T) { testZKByHand(t, e, conn) },
			"rights":          func(t *testing.T) { testZKRights(t, e, conn) },
			"expired session": func(t *testing.T) { testZKExpired(t, e, conn) },
			// A server that accepts connections and says nothing, as one that hangs, delays a client by
			// some seconds, and then the next server is used.
			"silent server": func(t *testing.T) {
				_, err := e.Open(t, storetest.Serve(t, nil)+","+s.Addr, "silent").Read(Within(t), "node/0000001")
				assert.NoError(t, err)
			},
		} {
			t.Run(name, func(t *testing.T) { // they wait most of their time
				t.Parallel()
				test(t)
			})
		}
	})
	conn.Close() // the connections of the server are counted
	e.Test(t)
}

// A text that is no cell hides none, and no version is taken for the data version of a znode.
func testZKByHand(t *testing.T, e Engine, conn *zk.Conn) {
	s, ctx := e.Open(t, e.Server.Addr, "byhand"), Within(t)
	first := Cell(t, s, "node/0000005", "first")
	for _, name := range []string{"X", "a++b", "a"} {
		_, err := conn.Create("/byhand/"+name, []byte("not a cell"), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	cells, err := s.List(ctx, "", "\xff", 1)
	assert.ErrorIs(t, err, stores.ErrDamaged)
	assert.Len(t, cells, 1)
	for _, wrong := range []uint64{1, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64, math.MaxInt64} {
		_, err := s.Swap(ctx, first.Key, wrong, nil)
		assert.ErrorIs(t, err, stores.ErrConflict, wrong)
	}
}

// With a user, znodes are that user's alone. Rights can be taken away later.
func testZKRights(t *testing.T, e Engine, conn *zk.Conn) {
	addr := e.Server.Addr
	Works(t, Open(t, "zk://flake:p%40ss%2Fwo%3Ard%25%3F%23@"+addr+"?namespace=own"))
	testDenied(t, e.Server, map[string]string{"zk://" + addr + "?namespace=own": "", "zk://flake:wr0ng@" + addr + "?namespace=own": ""})
	rights := func(permissions int32) func() {
		return func() {
			for _, path := range []string{"/rights", "/rights/node+0000001"} {
				_, err := conn.SetACL(path, zk.WorldACL(permissions), -1)
				require.NoError(t, err)
			}
		}
	}
	testRefusals(t, map[string]func(*testing.T) Refusal{"rights": func(t *testing.T) Refusal {
		return Refusal{Store: e.Open(t, addr, "rights"), Advice: "access rights of the znodes", Reads: true,
			Refuse: rights(zk.PermAdmin), Fix: rights(zk.PermAll)}
	}})
	_, err := conn.Create("/ephemeral", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = e.Open(t, addr, "ephemeral").Swap(Within(t), "node/0000001", 0, nil)
	assert.Equal(t, stores.Permanent, stores.KindOf(err))
	assert.ErrorContains(t, err, "use another namespace")
}

// A session that the server has ended, because it has not heard from the client for
// too long, is followed by another.
func testZKExpired(t *testing.T, e Engine, beside *zk.Conn) {
	proxy := storetest.NewProxy(t, e.Server.Addr)
	s := e.Open(t, proxy.Addr(), "expired")
	cell := Cell(t, s, "node/0000001", "before")
	// The end of a longer session takes this with it.
	conn, _, err := zk.Connect([]string{proxy.Addr()}, 8*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = conn.Create("/session", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	proxy.Refuse()
	proxy.Cut()
	Until(t, func(context.Context) error {
		if there, _, err := beside.Exists("/session"); there || err != nil {
			return errors.Join(errors.New("the session does not expire"), err)
		}
		return nil
	})
	proxy.Resume()
	var is stores.Cell
	Until(t, func(ctx context.Context) (err error) {
		is, err = s.Read(ctx, cell.Key)
		return err
	})
	assert.Equal(t, cell, is)
	Swap(t, s, cell, "after")
}

func TestZooKeeperFailover(t *testing.T) {
	t.Parallel()
	// They notice within a second or two that another has gone.
	c := StartTrio(t, servers.ZooKeeper, func(i int, ports [6]int) []string {
		// Whether a server leads is asked by the command srvr.
		lines := []string{fmt.Sprint("myid=", i+1), "tickTime=500", "initLimit=40", "syncLimit=3", fmt.Sprint("maxSessionTimeout=", patientSession.Milliseconds()), "4lw.commands.whitelist=srvr"}
		for j := range 3 {
			lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", j+1, ports[j], ports[j+3]))
		}
		return lines
	})
	c.Leader = func(ctx context.Context) (leader *servers.Server, err error) {
		for _, m := range c.Members {
			says, err := m.Srvr(ctx)
			if strings.Contains(says, "Mode: leader") {
				leader = m
			} else if !strings.Contains(says, "Mode: follower") {
				return nil, fmt.Errorf("a server is %q: %v", says, err)
			}
		}
		return leader, nil
	}
	t.Run("deposed leader", func(t *testing.T) { testZKDeposed(t, c) })
	t.Run("fleet", func(t *testing.T) { c.Test(t) })
}

// patientSession is that of a client which does not leave a server that hangs for as long as an election may take. patient
// asks for it in the client's stead.
const patientSession = 5 * time.Minute

func patient(to io.Writer, from io.Reader) {
	begin := make([]byte, 20) // of the request to connect, which ends in the length of the session
	_, _ = io.ReadFull(from, begin)
	binary.BigEndian.PutUint32(begin[16:], uint32(patientSession.Milliseconds()))
	_, _ = io.Copy(to, io.MultiReader(bytes.NewReader(begin), from))
}

// A leader that hung is replaced, and when it comes back it answers what it was asked before
// it knows that. A Read through it does not show the state of before, and a Swap fails.
func testZKDeposed(t *testing.T, c *Trio) {
	leader, others := c.Await(t)
	proxy := storetest.NewProxy(t, leader.Addr)
	old := Open(t, "zk://"+relay(t, proxy.Addr(), patient, plain)+"?namespace=deposed")
	beside := Open(t, "zk://"+others[0].Addr+","+others[1].Addr+"?namespace=deposed")
	first := Cell(t, old, "node/0000001", "first")

	require.NoError(t, leader.Suspend())
	second := Write(t, beside, first.Key, "second")
	var is stores.Cell
	var reading, swapping error
	var asking sync.WaitGroup
	ctx := Within(t)
	proxy.Hold(storetest.ToServer) // so that both requests have been sent when it goes on
	asking.Go(func() { is, reading = old.Read(ctx, first.Key) })
	require.True(t, proxy.Held(storetest.ToServer, 20*time.Second))
	proxy.Pass(storetest.ToServer)
	asking.Go(func() { _, swapping = old.Swap(ctx, first.Key, first.Version, []byte("late")) })
	require.True(t, proxy.Held(storetest.ToServer, 20*time.Second))
	proxy.Resume()
	require.NoError(t, leader.Resume())
	asking.Wait()
	if reading == nil {
		assert.Equal(t, second, is, "Read through a deposed leader")
	}
	assert.Error(t, swapping, "Swap through a deposed leader, of a version that was replaced")
}

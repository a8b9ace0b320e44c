//go:build unix

package zookeeper

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/tickflake/tickflake/internal/server"
	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores"
)

// member is one server of an ensemble.
type member struct {
	*servertest.Process
	addr string
}

// ensemble is three servers that notice within a second or two that another has gone.
type ensemble [3]*member

func startEnsemble(t testing.TB) *ensemble {
	t.Helper()
	var lines strings.Builder
	// The last line of a name counts. Whether a server leads is asked by the command srvr.
	lines.WriteString("tickTime=500\ninitLimit=40\nsyncLimit=3\n4lw.commands.whitelist=srvr\n")
	for i := range 3 {
		fmt.Fprintf(&lines, "server.%d=127.0.0.1:%d:%d\n", i+1, servertest.Port(t), servertest.Port(t))
	}
	e := new(ensemble)
	for i := range e {
		dir, port := servertest.Dir(t, ""), servertest.Port(t)
		config, err := server.ZooKeeper(dir, port)
		servertest.Need(t, err)
		config.Args = append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, config.Args...)
		name := filepath.Join(dir, "zoo.cfg")
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, append(text, lines.String()...), 0o600)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "myid"), fmt.Append(nil, i+1), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		e[i] = &member{Process: servertest.Start(t, config), addr: fmt.Sprint("127.0.0.1:", port)}
		t.Cleanup(e[i].thaw) // before it is stopped
	}
	e.until(t, 3)
	return e
}

// url returns the URL of all servers.
func (e *ensemble) url() string {
	return fmt.Sprintf("zk://%s,%s,%s?namespace=fleet", e[0].addr, e[1].addr, e[2].addr)
}

// until waits until so many servers serve, and returns the leader and the others.
func (e *ensemble) until(t testing.TB, serving int) (leader *member, others []*member) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; time.Sleep(20 * time.Millisecond) {
		leader, others = nil, nil
		n := 0
		for _, m := range e {
			switch m.mode() {
			case "leader":
				leader = m
				n++
			case "follower":
				others = append(others, m)
				n++
			}
		}
		if leader != nil && n >= serving {
			return leader, others
		}
	}
	t.Fatalf("after two minutes, no leader of %d servers", serving)
	return nil, nil
}

// mode returns what the server says about itself.
func (m *member) mode() string {
	conn, err := net.DialTimeout("tcp", m.addr, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close() //nolint:errcheck // it is only read from
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write([]byte("srvr"))
	text, _ := io.ReadAll(conn)
	_, mode, _ := strings.Cut(string(text), "Mode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode
}

// freeze stops the server, as a machine that hangs. Its connections stay.
func (m *member) freeze() { m.signal(syscall.SIGSTOP) }

func (m *member) thaw() { m.signal(syscall.SIGCONT) }

func (m *member) signal(s syscall.Signal) {
	if pid := m.PID(); pid != 0 {
		_ = syscall.Kill(pid, s)
	}
}

// recoveryLimit is far above what a busy machine needs.
const recoveryLimit = 90 * time.Second

func TestEnsemble(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t)
	t.Run("deposed leader", func(t *testing.T) { testDeposedLeader(t, e) })
	t.Run("fleet", func(t *testing.T) { testFleet(t, e) })
}

// The leader is killed, the next one hangs and comes back, and the majority hangs and comes
// back, while a fleet issues IDs. The clocks are stepped and processes crash meanwhile.
func testFleet(t *testing.T, e *ensemble) {
	fleet := servertest.StartFleet(t, servertest.FleetConfig{Processes: 3, Window: 1500 * time.Millisecond, Timeout: time.Second,
		Open: func(ctx context.Context) (stores.Store, error) { return stores.Open(ctx, e.url()) }})
	recovered := func(what string) {
		t.Helper()
		t.Logf("%s: recovered after %v", what, fleet.WaitRecovered(t, 10, recoveryLimit))
	}

	leader, _ := e.until(t, 3)
	fleet.Step(-time.Minute, 0)
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	fleet.Crash(1)
	recovered("killed leader")
	if err := leader.Process.Start(); err != nil {
		t.Fatal(err)
	}

	leader, _ = e.until(t, 3)
	leader.freeze()
	fleet.Step(time.Minute, 0)
	fleet.Crash(2)
	recovered("hung leader")
	leader.thaw()
	recovered("leader that came back")

	_, others := e.until(t, 3)
	for _, m := range others {
		m.freeze()
	}
	fleet.Step(-time.Minute, 2)
	fleet.Crash(0)
	time.Sleep(2 * time.Second) // the fault: longer than a window
	for _, m := range others {
		m.thaw()
	}
	recovered("hung majority")
	fleet.Close(t).Check(t)
}

// A leader that hung is replaced, and when it comes back it answers what it was asked before
// it knows that. A Read through it does not show the state of before, and a Swap fails.
func testDeposedLeader(t *testing.T, e *ensemble) {
	leader, others := e.until(t, 3)
	conn, _, err := zk.Connect([]string{leader.addr}, 10*time.Second, zk.WithLogger(unspoken{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	old, err := New(conn, "deposed")
	if err != nil {
		t.Fatal(err)
	}
	beside := openURL(t, fmt.Sprintf("zk://%s,%s?namespace=deposed", others[0].addr, others[1].addr))
	begin, cancel := context.WithTimeout(t.Context(), recoveryLimit)
	defer cancel()
	first, err := swapCell(begin, old, stores.Cell{Key: "node/0000001"}, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}

	leader.freeze()
	var second stores.Cell
	for {
		ctx, cancel := context.WithTimeout(begin, time.Second)
		var is stores.Cell
		if is, err = beside.Read(ctx, first.Key); err == nil {
			second, err = swapCell(ctx, beside, is, []byte("second"))
		}
		cancel()
		if err == nil {
			break
		}
		if begin.Err() != nil {
			t.Fatalf("no other leader: %v", err)
		}
	}
	type read struct {
		cell stores.Cell
		err  error
	}
	reads, swaps := make(chan read, 1), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		cell, err := old.Read(ctx, first.Key)
		reads <- read{cell, err}
	}()
	go func() {
		_, err := swapCell(ctx, old, first, []byte("late"))
		swaps <- err
	}()
	time.Sleep(50 * time.Millisecond) // so that the requests are usually in its socket
	leader.thaw()
	r := <-reads
	if r.err == nil && r.cell.Version != second.Version {
		t.Errorf("Read through a deposed leader: %v, want %v or an error", r.cell, second)
	}
	if <-swaps == nil {
		t.Error("Swap through a deposed leader, of a version that was replaced, succeeded")
	}
}

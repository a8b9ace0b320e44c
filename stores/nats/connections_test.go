package nats

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores/storetest"
)

// The package doc has these bounds, and so has docs/bounds.md. A closed connection counts for
// a moment.
func TestConnectionsReachAPlateau(t *testing.T) {
	server, addr := startServer(t)
	servertest.Plateau{Server: server, Addr: addr, Open: openStore, AtRest: 1, AtMost: most + 1}.Run(t)
}

// While a server accepts connections and says nothing, a store goes on to try, and finds the
// server that is there in the end. The driver forgets to close the connections of these
// attempts, and they must not count for ever.
func TestSilentForLong(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test has ended
	attempts := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			attempts <- struct{}{}
			go func() { // as a server that goes away when its client does
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}()
		}
	}()
	_, addr := startServer(t)
	proxy := storetest.NewProxy(t, addr)
	s := openStore(t, proxy.Addr(), "silent")
	proxy.To(silent.Addr().String())
	proxy.Cut()
	late := time.After(patience)
	for n := range most + 1 { // each takes two seconds
		select {
		case <-attempts:
		case <-late:
			t.Fatalf("%d attempts in %v", n, patience)
		}
	}
	proxy.To(addr)
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := s.Read(limited(t), "node/0000001")
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			t.Fatal(err)
		}
	}
}

package nats

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// Each address of a host has a time of its own: one that answers nothing, as of a machine that is gone, does
// not use up that of the next.
func TestHostWithAddressThatHangs(t *testing.T) {
	good, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close() //nolint:errcheck // the test has ended
	_, port, _ := net.SplitHostPort(good.Addr().String())
	full, err := net.Listen("tcp", "127.0.0.2:"+port) // and its queue of connections
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close() //nolint:errcheck // the test has ended
	raw, err := full.(*net.TCPListener).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), 0) })
	}
	for err == nil {
		_, err = net.DialTimeout("tcp", full.Addr().String(), 200*time.Millisecond)
	}
	d := newDialer()
	defer d.Close() //nolint:errcheck // the test has ended
	d.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")}, nil
	}
	conn, err := d.Dial("tcp", "host.example:"+port)
	if err != nil || conn.RemoteAddr().String() != good.Addr().String() {
		t.Fatalf("Dial: %v", err)
	}
	// The driver forgets to close the connection of an attempt that was not answered.
	if _, err := d.Dial("tcp", "host.example:"+port); err != nil {
		t.Errorf("Dial again: %v", err)
	}
	_ = conn.SetReadDeadline(time.Now())
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection before: %v", err)
	}
}

package storetest

import (
	"net"
	"testing"
)

// silent returns the address of a server that says nothing after before, which may be nil.
// It lives until the test ends.
func silent(t testing.TB, before func(net.Conn) error) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			if before != nil {
				go before(conn) //nolint:errcheck // the client has gone away
			}
		}
	}()
	return listener.Addr().String()
}

// full returns the address of a listener that answers no SYN, because its queue is full
// and nothing is taken from it. It lives until the test ends.
func full(t testing.TB) (string, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if err := shorten(listener.(*net.TCPListener)); err != nil {
		return "", err
	}
	for {
		conn, err := net.DialTimeout("tcp", listener.Addr().String(), hangTime)
		if err != nil {
			return listener.Addr().String(), nil // it hangs
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
}

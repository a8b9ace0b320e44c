package leasetest_test

import (
	"testing"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
)

// testServer is a test function of the Store's package, there named TestServer. The
// server is a fake one; a real one is an [os/exec.Cmd], with a port and a directory of
// its own, that Kill kills and waits for, and Start starts anew.
func testServer(t *testing.T) {
	server := newFakeServer(t)
	leasetest.TestServer(t, leasetest.Server{
		Addr: server.addr,
		Open: func(_ testing.TB, addr, namespace string) lease.Store {
			return &fakeClient{addr: addr, namespace: namespace}
		},
		Kill:  server.kill,
		Start: server.start,
	})
}

// The server behind a Store is killed, answers late and loses connections.
func ExampleTestServer() {
	_ = testServer // is run by go test
}

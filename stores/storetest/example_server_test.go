package storetest_test

import (
	"testing"

	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// testServer is a test function of the Store's package, there named TestServer. The
// server is a fake one; a real one is an [os/exec.Cmd], with a port and a directory of
// its own, that Kill kills and waits for, and Start starts anew.
func testServer(t *testing.T) {
	server := newFakeServer(t)
	storetest.TestServer(t, storetest.Server{
		Addr: server.addr,
		Open: func(_ testing.TB, addr, namespace string) stores.Store {
			return &fakeClient{addr: addr, namespace: namespace}
		},
		Damage: server.damage, Kill: server.kill, Start: server.start,
	})
}

// The server behind a Store is killed, answers late and loses connections.
func ExampleTestServer() {
	_ = testServer // is run by go test
}

package storetest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tickflake/tickflake/stores/storetest"
)

// testLostAnswer is a test function, which would be named TestLostAnswer. An order is
// placed, and the connection is cut before the answer comes back.
func testLostAnswer(t *testing.T) {
	var orders atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		orders.Add(1)
	}))
	t.Cleanup(server.Close)
	proxy := storetest.NewProxy(t, server.Listener.Addr().String())

	proxy.Hold(storetest.ToClient)
	answered := make(chan error, 1)
	go func() {
		answer, err := http.Post("http://"+proxy.Addr(), "text/plain", nil)
		if err == nil {
			_ = answer.Body.Close()
		}
		answered <- err
	}()
	if !proxy.Held(storetest.ToClient, 30*time.Second) {
		t.Fatal("the server has not answered")
	}
	proxy.Cut()
	if err := <-answered; err == nil {
		t.Error("the client has an answer that was lost")
	}
	if n := orders.Load(); n != 1 {
		t.Errorf("%d orders, want the one whose answer was lost", n)
	}

	proxy.Resume()
	answer, err := http.Post("http://"+proxy.Addr(), "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

// An answer is lost on its way back, between a client and a server of any kind.
func ExampleProxy() {
	_ = testLostAnswer // is run by go test
}

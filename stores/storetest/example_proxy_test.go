package storetest_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/tickflake/tickflake/stores/storetest"
)

// An answer is lost on its way back, between a client and a server of any kind. A test has NewProxy instead, which ends with it.
func ExampleProxy() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fmt.Println("an order is placed") }))
	defer server.Close()
	proxy, err := storetest.StartProxy(server.Listener.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer proxy.Close()

	proxy.Hold(storetest.ToClient)
	answered := make(chan bool)
	go func() {
		answer, err := http.Post("http://"+proxy.Addr(), "text/plain", nil)
		if err == nil {
			_ = answer.Body.Close()
		}
		answered <- err == nil
	}()
	fmt.Println("the server answers:", proxy.Held(storetest.ToClient, 30*time.Second))
	proxy.Cut()
	fmt.Println("the client knows:", <-answered)
	// Output:
	// an order is placed
	// the server answers: true
	// the client knows: false
}

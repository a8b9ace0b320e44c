package service_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service"
)

// Serve IDs on a free port of loopback until the context ends.
func Example() {
	gen, err := generator.New(generator.WithNode(1))
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server, err := service.New(service.Config{Generator: gen, HTTP: listener})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()

	response, err := http.Post("http://"+listener.Addr().String()+"/v1/ids?n=3", "", nil)
	if err != nil {
		log.Fatal(err)
	}
	response.Body.Close()
	fmt.Println(response.Status)

	cancel()
	fmt.Println(<-ended)
	// Output:
	// 200 OK
	// <nil>
}

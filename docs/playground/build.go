//go:build !js

// Command playground builds the playground and serves it on this machine, or with -o writes it to
// a directory, whose files any web server can serve.
//
//	go run ./docs/playground
package main

import (
	"compress/gzip"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

//go:embed index.html
var page []byte

func main() {
	log.SetFlags(0)
	out := flag.String("o", "", "write the playground to this `directory`, and do not serve it")
	flag.Parse()
	if err := run(*out); err != nil {
		log.Fatal(err)
	}
}

func run(out string) error {
	serve := out == ""
	log.Print("building the program for the browser: some seconds, and up to a minute the first time")
	if serve {
		var err error
		if out, err = os.MkdirTemp("", "playground"); err != nil {
			return err
		}
		defer os.RemoveAll(out)
	}
	if err := build(out); err != nil || !serve {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, func() { l.Close() })
	fmt.Printf("http://%s/\n", l.Addr())
	if err := http.Serve(l, http.FileServer(http.Dir(out))); ctx.Err() == nil {
		return err
	}
	return nil
}

// build writes the page, the program in compressed form, and Go's glue between the two.
func build(out string) error {
	program := filepath.Join(out, "playground.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "github.com/tickflake/tickflake/docs/playground")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	defer os.Remove(program)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	glue, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	code, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	packed, err := os.Create(program + ".gz")
	if err != nil {
		return err
	}
	defer packed.Close()
	w, err := gzip.NewWriterLevel(packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(code); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "wasm_exec.js"), glue, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "index.html"), page, 0o644)
}

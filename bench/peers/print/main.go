// Command print puts the public ID generators of package peers through the fault
// catalogue, and prints what they did, in Markdown or as JSON.
//
//	go run ./bench/peers/print [-json] [-limit 5s] [words of names]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/tickflake/tickflake/bench/peers"
)

func main() {
	peers.Serve()
	asJSON := flag.Bool("json", false, "print JSON")
	limit := flag.Duration("limit", peers.DefaultLimit, "the real time after which a peer that gives no answer is ended")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: print [-json] [-limit 5s] [words: only the peers whose names contain one of them]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *limit <= 0 {
		fmt.Fprintln(os.Stderr, "print: the limit must be above zero")
		os.Exit(2)
	}
	report := peers.Run(*limit, flag.Args()...)
	if len(report.Peers) == 0 {
		fmt.Fprintln(os.Stderr, "print: no peer has such a name")
		os.Exit(2)
	}
	if !*asJSON {
		fmt.Print(report.Markdown())
		return
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(report); err != nil {
		fmt.Fprintln(os.Stderr, "print:", err)
		os.Exit(1)
	}
}

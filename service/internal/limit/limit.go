// Package limit has every bound on what a stranger, a client and the server may take that has no setting. Those with a
// setting are fields of service.Config. docs/service.md shows all.
package limit

import (
	"fmt"
	"time"
)

// Strangers are peers that have shown neither a token nor, where one is asked for, a certificate.
const (
	Strangers       = 1024     // connections of one listener: a pool of their own, the oldest dropped first
	StrangerReplies = 32 << 10 // bytes of replies that a connection of RESP has not read
	Probes          = 64       // connections to the listener of probes, the oldest dropped first
)

// One connection of RESP.
const (
	Argument  = 4 << 10  // bytes in an argument
	Arguments = 64       // in a command, its name among them
	Command   = 16 << 10 // bytes in a command, with its headers; and of commands that are read ahead
	Flush     = 32 << 10 // bytes of replies that are collected before they are written

	LeastReplies = 64 << 10 // bytes of replies that it may have unread in any case
	Replies      = 32 << 20 // bytes of replies that it may have unread at most: a million IDs
	AllReplies   = 64 << 20 // bytes of replies that all may have unread; each client up to half of what others leave
)

// One connection of HTTP or gRPC.
const (
	Headers     = 16 << 10         // bytes of the request line and the headers
	Message     = 16 << 10         // bytes of a request of gRPC
	Calls       = 100              // at once over gRPC
	HTTPStreams = 64               // requests at once over HTTP/2; each holds a chunk of its answer
	Window      = 64 << 10         // bytes that a client of gRPC may send before they are read
	Ping        = time.Minute      // from one ping of the server to the next
	PingTimeout = 20 * time.Second // for the answer to a ping
	ClientPings = 5 * time.Second  // a client that pings more often is disconnected
)

// Turn is how many IDs a request may ask for without a turn: of the requests for more, one of each client is served at a time.
const Turn = 100

// The server.
const (
	SpareFiles   = 256  // descriptors that connections leave free, for the store and the probes
	Streams      = 64   // of reflection, for all
	Waiting      = 1024 // calls of gRPC that may wait for their request without a timer: 10 MB of memory
	Scrapes      = 4    // requests for /metrics at once
	LogLines     = 5    // refused requests of one code that are logged in a second
	LogText      = 1024 // bytes of an error that are logged
	ClosedAtOnce = 64   // sequences that a drain closes at a time
)

// Row is a limit as docs/service.md shows it.
type Row struct {
	Whom string // a stranger, a client, a connection, the server
	What string
	Most string // with its unit; a setting with its default
	Why  string // and what happens beyond
}

func size(bytes int) string {
	switch {
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Table has all limits. Those of a client, and of the server, are settings.
var Table = []Row{
	{"strangers", "connections to an address", fmt.Sprint(Strangers), "the oldest goes for the newest"},
	{"a stranger", "time to show a token or certificate", "`--read-timeout`, 10s", "its connection ends"},
	{"a stranger", "unread replies", size(StrangerReplies), "its commands wait"},
	{"a client", "connections; calls at once over HTTP and gRPC", "`max-connections`, half of the server's", "`busy`"},
	{"a client", "IDs and numbers per second; at once", "`rate`, `burst`", "`busy`; what never fits is `bad_input`"},
	{"a client", fmt.Sprintf("requests for more than %d IDs at once", Turn), "1; without clients, of all", "the next one waits, then `busy`"},
	{"a client", "open sequences", "`max-sequences`", "the longest unused is closed"},
	{"a client", "unread replies", "half of what others leave, at least " + size(LeastReplies), "its commands wait"},
	{"a connection", "unread replies", size(Replies), "its commands wait; it is cut off after `--read-timeout`"},
	{"a connection", "command; its arguments; one of them", fmt.Sprintf("%s; %d; %s", size(Command), Arguments, size(Argument)), "it is closed"},
	{"a connection", "headers; message of gRPC; a body of HTTP", fmt.Sprintf("%s; %s; none", size(Headers), size(Message)), "refused"},
	{"a connection", "calls of gRPC; requests of HTTP/2", fmt.Sprintf("%d; %d", Calls, HTTPStreams), "further ones wait"},
	{"a connection", "time for a request; for an answer", "`--read-timeout`, 10s", "it is closed"},
	{"a request", "IDs; numbers", "`--max-batch`, 10,000; `--max-numbers`, 1,000,000", "`bad_input`"},
	{"a request", "time", "`--request-timeout`, 2s", "`unavailable`"},
	{"the server", "connections to an address", "`--max-connections`, 16,384", "`unavailable`; without clients, refused"},
	{"the server", "open sequences", "`--max-sequences`, 10,000", "the client with the most closes one"},
	{"the server", "unread replies", size(AllReplies), "see a client"},
	{"the server", "streams of reflection", fmt.Sprint(Streams), "`unavailable`"},
	{"the server", "files left free", fmt.Sprint(SpareFiles), "for the store and " + fmt.Sprint(Probes) + " probes"},
}

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
	StrangerStreams = 4        // of health and reflection on one connection: a program needs one of each
	Probes          = 64       // connections to the listener of probes, the oldest dropped first
)

// One connection of RESP.
const (
	Argument  = 4 << 10  // bytes in an argument
	Arguments = 64       // in a command, its name among them
	Command   = 16 << 10 // bytes in a command, with its headers; and of commands that are read ahead
	Inline    = 4 << 10  // bytes in a command that is a line of text
	Flush     = 32 << 10 // bytes of replies that are collected before they are written

	LeastReplies = 64 << 10 // bytes of replies that it may have unread in any case
	Replies      = 32 << 20 // bytes of replies that it may have unread at most: a million IDs
	AllReplies   = 64 << 20 // bytes of replies that all may have unread; each client up to half of what others leave
)

// One connection of HTTP or gRPC.
const (
	Headers     = 16 << 10         // bytes of the request line and the headers
	Body        = 1 << 10          // bytes of a body of HTTP: an object in JSON of a few numbers
	Message     = 16 << 10         // bytes of a request of gRPC
	Calls       = 100              // at once over gRPC
	HTTPStreams = 64               // requests at once over HTTP/2; each holds a chunk of its answer
	Window      = 64 << 10         // bytes that a client of gRPC may send before they are read
	Ping        = time.Minute      // from one ping of the server to the next
	PingTimeout = 20 * time.Second // for the answer to a ping
	ClientPings = 5 * time.Second  // a client that pings more often is disconnected
)

// The server.
const (
	SpareFiles   = 256  // descriptors that connections leave free, for the store and the probes
	Waiting      = 1024 // calls of gRPC that may wait for their request without a timer: 10 MB of memory
	Scrapes      = 4    // requests for /metrics at once
	Listed       = 100  // open sequences that INFO and /v1/status list
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
	{"strangers", "connections to an address", fmt.Sprint(Strangers), "beside those that are known: the oldest goes for the newest"},
	{"a stranger", "time to show a token, and a certificate where one is asked for", "`--read-timeout`, 10s", "then its connection ends"},
	{"a stranger", "replies that it has not read", size(StrangerReplies), "its commands wait"},
	{"a stranger", "streams of health on a connection", fmt.Sprint(StrangerStreams), "a program needs one"},
	{"a client", "connections, and calls under way over HTTP and gRPC", "`max-connections`, half of the server's", "no client holds them all: `busy`"},
	{"a client", "IDs and numbers per second, and at once", "`rate`, `burst`", "`busy`; what never fits is `bad_input`"},
	{"a client", "open sequences", "`max-sequences`", "the one that was unused for longest is closed"},
	{"a client", "replies that it has not read", "half of what others leave", "its commands wait; it has " + size(LeastReplies) + " in any case"},
	{"a connection", "replies that it has not read", size(Replies), "a million: then its commands wait, and it is cut off after `--read-timeout`"},
	{"a connection", "a command; its arguments; one of them", fmt.Sprintf("%s; %d; %s", size(Command), Arguments, size(Argument)), "it is closed"},
	{"a connection", "headers; a body of HTTP; a message of gRPC", fmt.Sprintf("%s; %s; %s", size(Headers), size(Body), size(Message)), "refused"},
	{"a connection", "calls of gRPC at once; requests of HTTP/2", fmt.Sprintf("%d; %d", Calls, HTTPStreams), "further ones wait"},
	{"a connection", "time for a request, and for an answer", "`--read-timeout`, 10s", "it is closed"},
	{"a request", "IDs; numbers", "`--max-batch`, 10,000; `--max-numbers`, 1,000,000", "`bad_input`"},
	{"a request", "time", "`--request-timeout`, 2s", "`unavailable`"},
	{"the server", "connections to an address", "`--max-connections`, 16,384", "`unavailable`, or refused where there are no clients"},
	{"the server", "open sequences", "`--max-sequences`, 10,000", "the client with the most closes one"},
	{"the server", "replies that are not read, in all", size(AllReplies), "see a client"},
	{"the server", "files that connections leave free", fmt.Sprint(SpareFiles), "for the store, and " + fmt.Sprint(Probes) + " probes"},
}

// Package limit has every bound on what a stranger, a client and the server may take that has no setting. Those with a
// setting are fields of service.Config. docs/service.md has the table of all.
package limit

import "time"

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

package limit

import "fmt"

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

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
	{"strangers", "connections to an address", fmt.Sprint(Strangers), "the oldest goes for the newest"},
	{"a stranger", "time to show a token or certificate", "`--read-timeout`, 10s", "its connection ends"},
	{"a stranger", "unread replies", size(StrangerReplies), "its commands wait"},
	{"a stranger", "streams of health on a connection", fmt.Sprint(StrangerStreams), "a program needs one"},
	{"a client", "connections; calls at once over HTTP and gRPC", "`max-connections`, half of the server's", "`busy`"},
	{"a client", "IDs and numbers per second; at once", "`rate`, `burst`", "`busy`; what never fits is `bad_input`"},
	{"a client", "open sequences", "`max-sequences`", "the longest unused is closed"},
	{"a client", "unread replies", "half of what others leave, at least " + size(LeastReplies), "its commands wait"},
	{"a connection", "unread replies", size(Replies), "its commands wait; it is cut off after `--read-timeout`"},
	{"a connection", "command; its arguments; one of them", fmt.Sprintf("%s; %d; %s", size(Command), Arguments, size(Argument)), "it is closed"},
	{"a connection", "headers; body; message of gRPC", fmt.Sprintf("%s; %s; %s", size(Headers), size(Body), size(Message)), "refused"},
	{"a connection", "calls of gRPC; requests of HTTP/2", fmt.Sprintf("%d; %d", Calls, HTTPStreams), "further ones wait"},
	{"a connection", "time for a request; for an answer", "`--read-timeout`, 10s", "it is closed"},
	{"a request", "IDs; numbers", "`--max-batch`, 10,000; `--max-numbers`, 1,000,000", "`bad_input`"},
	{"a request", "time", "`--request-timeout`, 2s", "`unavailable`"},
	{"the server", "connections to an address", "`--max-connections`, 16,384", "`unavailable`; without clients, refused"},
	{"the server", "open sequences", "`--max-sequences`, 10,000", "the client with the most closes one"},
	{"the server", "unread replies", size(AllReplies), "see a client"},
	{"the server", "files left free", fmt.Sprint(SpareFiles), "for the store and " + fmt.Sprint(Probes) + " probes"},
}

// Package wire has what the service and its clients both have to know of an answer: why a request is not served, in
// the words of each protocol, and by what a client sees that a server has another layout.
package wire

import "hash/fnv"

// Code is the condition for which a request is not served: the client decides by it what to do next.
type Code uint8

// The codes.
const (
	Internal        Code = iota // a bug, or an error that is not known here
	BadInput                    // change the request
	BadHost                     // the request calls the server by a name that is not its own
	Unauthenticated             // give a token
	WrongToken                  // give another token
	Forbidden                   // the client may not do this
	NotFound                    // there is no such sequence
	Busy                        // repeat after a delay: the strategy, a rate or a limit of the client rejected the request
	Unavailable                 // repeat after the delay, or ask another server; only that if there is no delay
	OutOfRange                  // the sequence or the time field has ended: do not repeat
	Failed                      // the store needs an operator: do not repeat
	Unread                      // the client does not read its replies
	Canceled                    // the client has gone away
)

// Codes is the number of codes.
const Codes = int(Canceled) + 1

// Condition is a code in the words of the protocols.
type Condition struct {
	Name  string // in counts, logs and problems
	RESP  string // the first word of the error, by which clients of Redis repeat
	GRPC  uint32 // the code of the status
	HTTP  int    // the status; 0: nobody reads an answer
	Final bool   // every server of the fleet would answer the same, so none else is asked
}

// conditions are by code. All protocols answer from this table, and the client of Go reads it: what is to be repeated
// with one is so with each. Proxies and clients of HTTP repeat a 5xx by themselves.
var conditions = [Codes]Condition{
	Internal:        {"internal", "ERR", 13, 500, false},
	BadInput:        {"bad_input", "ERR", 3, 400, true},
	BadHost:         {"bad_host", "ERR", 7, 421, true},
	Unauthenticated: {"unauthenticated", "NOAUTH", 16, 401, true},
	WrongToken:      {"wrong_token", "WRONGPASS", 16, 401, true},
	Forbidden:       {"forbidden", "NOPERM", 7, 403, true},
	NotFound:        {"not_found", "ERR", 5, 404, true},
	Busy:            {"busy", "TRYAGAIN", 8, 429, false},
	Unavailable:     {"unavailable", "LOADING", 14, 503, false},
	OutOfRange:      {"out_of_range", "ERR", 11, 409, true},
	Failed:          {"failed", "ERR", 9, 409, true},
	Unread:          {"unread", "ERR", 14, 0, false},
	Canceled:        {"canceled", "ERR", 1, 0, false},
}

// Words returns the code in the words of the protocols.
func (c Code) Words() *Condition { return &conditions[c] }

func (c Code) String() string { return conditions[c].Name }

// OfGRPC returns the first condition with the code of a status, or that of [Internal].
func OfGRPC(status uint32) Code {
	for code := range conditions {
		if conditions[code].GRPC == status {
			return Code(code)
		}
	}
	return Internal
}

// Fingerprint returns the fingerprint of a layout's text, which each answer with IDs carries: its FNV-1a hash of 64 bits.
func Fingerprint(layout string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(layout)) // which never fails
	return h.Sum64()
}

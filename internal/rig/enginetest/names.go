package enginetest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// Host is a name of 127.0.0.1, in a process that imports this package, for tests of
// resolvers that hang.
const Host = "hangs.test"

// names is the name server of this process. It knows Host alone.
var names = struct {
	sync.Mutex
	answering chan struct{} // closed while it answers
}{answering: make(chan struct{})}

// The resolver is never replaced again: drivers may read it at any time.
func init() {
	close(names.answering)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveNames(server)
		return client, nil
	}}
}

// Resolve makes the resolver of this process say nothing, or answer again. Then it also
// answers the questions that have waited.
func Resolve(answers bool) {
	names.Lock()
	defer names.Unlock()
	select {
	case <-names.answering:
		if !answers {
			names.answering = make(chan struct{})
		}
	default:
		if answers {
			close(names.answering)
		}
	}
}

// serveNames answers the questions of one connection of the resolver.
func serveNames(conn net.Conn) {
	closed := make(chan struct{})
	questions := make(chan []byte)
	go func() {
		defer close(closed)
		for {
			var size [2]byte // as in DNS over TCP
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				return
			}
			question := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(conn, question); err != nil {
				return
			}
			select {
			case questions <- question:
			case <-closed:
			}
		}
	}()
	for {
		select {
		case question := <-questions:
			names.Lock()
			answering := names.answering
			names.Unlock()
			select {
			case <-answering:
				reply := answerTo(question)
				_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
			case <-closed:
				return
			}
		case <-closed:
			return
		}
	}
}

// answerTo returns the answer to a question of DNS (RFC 1035).
func answerTo(question []byte) []byte {
	const header, noSuchName = 12, 3
	at, name := header, ""
	for at < len(question) && question[at] != 0 {
		next := at + 1 + int(question[at])
		name += string(question[at+1:min(next, len(question))]) + "."
		at = next
	}
	end := at + 5 // the end of the name, the type and the class
	if end > len(question) {
		return nil
	}
	var code, answers byte
	switch {
	case name != Host+".":
		code = noSuchName
	case binary.BigEndian.Uint16(question[at+1:]) == 1: // the type A
		answers = 1
	}
	reply := append([]byte{question[0], question[1], 0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0}, question[header:end]...)
	if answers > 0 { // the name of the question, the type, the class, no time to live, 4 bytes
		reply = append(reply, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	return reply
}

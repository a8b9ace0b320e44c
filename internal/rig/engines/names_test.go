package enginetest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Host is a name of 127.0.0.1, in a process that imports this package, for tests of
// resolvers that hang.
const Host = "hangs.test"

// silence is locked while the name server of this process, which knows Host alone, does not answer.
var silence sync.RWMutex

// The resolver is never replaced again: drivers may read it at any time.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveNames(server)
		return client, nil
	}}
}

// Resolve makes the resolver of this process say nothing, and by the next call answer again. Then it also
// answers the questions that have waited.
func Resolve(answers bool) {
	if answers {
		silence.Unlock()
	} else {
		silence.Lock()
	}
}

// serveNames answers the questions of one connection of the resolver, as in DNS over TCP.
func serveNames(conn net.Conn) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		text := make([]byte, binary.BigEndian.Uint16(size[:]))
		var m dnsmessage.Message
		if _, err := io.ReadFull(conn, text); err != nil || m.Unpack(text) != nil || len(m.Questions) != 1 {
			return
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		switch asked := m.Questions[0]; {
		case asked.Name.String() != Host+".":
			m.RCode = dnsmessage.RCodeNameError
		case asked.Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: asked.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
		}
		reply, err := m.Pack()
		if err != nil {
			return
		}
		silence.RLock()
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)) // it waits for no other lock
		silence.RUnlock()
	}
}

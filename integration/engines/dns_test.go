package engines

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// hanging is the domain of names of 127.0.0.1, in this process, for tests of resolvers that hang.
const hanging = ".hangs.test"

// silences has, by name, a *sync.RWMutex that is locked while the name server of this process, which knows no other
// names, does not answer.
var silences sync.Map

func silenceOf(name string) *sync.RWMutex {
	silence, _ := silences.LoadOrStore(name, new(sync.RWMutex))
	return silence.(*sync.RWMutex)
}

// The resolver is never replaced again: drivers may read it at any time.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveNames(server)
		return client, nil
	}}
}

// resolve returns a function that makes the resolver of this process say nothing when it is asked for a name, and by the
// next call answer again. Then it also answers the questions that have waited.
func resolve(name string) func(answers bool) {
	return func(answers bool) {
		if answers {
			silenceOf(name).Unlock()
		} else {
			silenceOf(name).Lock()
		}
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
		asked := m.Questions[0]
		name := strings.TrimSuffix(asked.Name.String(), ".")
		switch {
		case !strings.HasSuffix(name, hanging):
			m.RCode = dnsmessage.RCodeNameError
		case asked.Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: asked.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
		}
		reply, err := m.Pack()
		if err != nil {
			return
		}
		silenceOf(name).RLock()
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)) // it waits for no other lock
		silenceOf(name).RUnlock()
	}
}

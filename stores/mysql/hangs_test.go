package mysql_test

import (
	"net"
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestHangs(t *testing.T) {
	s := start(t)
	url := func(addr, namespace string) string {
		other := *s
		other.addr = addr
		return other.url("namespace=" + namespace)
	}
	storetest.TestHangs(t, storetest.Hangs{
		Addr: s.addr, URL: url,
		TLS: func(addr, namespace string) string { return url(addr, namespace) + "&tls=skip-verify" },
		BeforeTLS: func(conn net.Conn) error {
			_, err := conn.Write(greeting())
			return err
		},
		Host: servertest.Host, Resolve: servertest.Resolve, Suspend: s.Suspend, Resume: s.Resume,
	})
}

// greeting is the first packet of a server that has TLS: a handshake of version 10.
func greeting() []byte {
	const protocol41, tls, pluginAuth = 0x0200, 0x0800, 0x00080000
	const flags = protocol41 | tls | 0x8000 /* secure connection */ | pluginAuth
	packet := append([]byte{10}, "8.0.0\x00"...)
	packet = append(packet, 1, 0, 0, 0)                    // the connection's id
	packet = append(packet, "12345678\x00"...)             // the challenge
	packet = append(packet, flags&0xff, flags>>8&0xff)     // half of the flags
	packet = append(packet, 45, 2, 0)                      // character set, status
	packet = append(packet, flags>>16&0xff, flags>>24, 21) // the other half, length of the challenge
	packet = append(packet, make([]byte, 10)...)
	packet = append(packet, "123456789012\x00mysql_native_password\x00"...)
	return append([]byte{byte(len(packet)), 0, 0, 0}, packet...)
}

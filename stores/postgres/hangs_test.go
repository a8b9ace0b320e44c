package postgres_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestHangs(t *testing.T) {
	s := start(t)
	url := func(addr, namespace string) string {
		other := *s
		other.addr = addr
		return other.url("postgres", "postgres", "namespace="+namespace)
	}
	storetest.TestHangs(t, storetest.Hangs{
		Addr: s.addr, URL: url,
		TLS: func(addr, namespace string) string {
			return strings.Replace(url(addr, namespace), "sslmode=disable", "sslmode=require", 1)
		},
		BeforeTLS: func(conn net.Conn) error {
			// The client sends an SSLRequest, and the server agrees.
			if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
				return err
			}
			_, err := conn.Write([]byte("S"))
			return err
		},
		Host: servertest.Host, Resolve: servertest.Resolve, Suspend: s.Suspend, Resume: s.Resume,
	})
}

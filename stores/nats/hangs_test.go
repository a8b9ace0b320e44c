package nats

import (
	"io"
	"net"
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestHangs(t *testing.T) {
	server, addr := startServer(t)
	storetest.TestHangs(t, storetest.Hangs{
		Addr: addr,
		URL:  func(addr, namespace string) string { return "nats://" + addr + "?namespace=" + namespace },
		TLS:  func(addr, namespace string) string { return "tls://" + addr + "?namespace=" + namespace },
		BeforeTLS: func(conn net.Conn) error {
			_, err := io.WriteString(conn, `INFO {"server_id":"x","version":"2.15.0","proto":1,"headers":true,"max_payload":1048576,"tls_required":true}`+"\r\n")
			return err
		},
		Host: servertest.Host, Resolve: servertest.Resolve, Suspend: server.Suspend, Resume: server.Resume,
	})
}

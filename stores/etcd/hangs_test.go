package etcd

import (
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestHangs(t *testing.T) {
	server, addr := startServer(t)
	storetest.TestHangs(t, storetest.Hangs{
		Addr: addr,
		URL:  func(addr, namespace string) string { return "etcd://" + addr + "?namespace=" + namespace },
		TLS:  func(addr, namespace string) string { return "etcds://u:p@" + addr + "?namespace=" + namespace },
		Host: servertest.Host, Resolve: servertest.Resolve, Suspend: server.Suspend, Resume: server.Resume,
	})
}

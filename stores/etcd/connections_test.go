package etcd

import (
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
)

// The package's doc has these bounds.
func TestConnectionsReachAPlateau(t *testing.T) {
	server, addr := startServer(t)
	servertest.Plateau{Server: server, Addr: addr, Open: openStore, AtRest: 1, AtMost: 8}.Run(t)
}

package zookeeper

import (
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
)

// The package doc has these bounds, and so has docs/bounds.md.
func TestConnectionsReachAPlateau(t *testing.T) {
	server, addr := startServer(t)
	servertest.Plateau{Server: server, Addr: addr, Open: openStore, AtRest: 1, AtMost: 2}.Run(t)
}

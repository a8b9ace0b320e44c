package nats

import (
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
)

// The package doc has these bounds, and so has docs/bounds.md. A closed connection counts for
// a moment.
func TestConnectionsReachAPlateau(t *testing.T) {
	server, addr := startServer(t)
	servertest.Plateau{Server: server, Addr: addr, Open: openStore, AtRest: 1, AtMost: most + 1}.Run(t)
}

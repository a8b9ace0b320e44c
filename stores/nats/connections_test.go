package nats

import (
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
)

// The package's doc has these bounds. One more counts for a moment after it was closed.
func TestConnectionsReachAPlateau(t *testing.T) {
	server, addr := startServer(t)
	servertest.Plateau{Server: server, Addr: addr, Open: openStore, AtRest: 1, AtMost: most + 1}.Run(t)
}

package redis_test

import (
	"context"
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
)

// The package doc has these bounds, and so has docs/bounds.md.
func TestConnectionsReachAPlateau(t *testing.T) {
	s := start(t)
	count := func(context.Context) (int, error) { return servertest.Sockets(t, s.addr) - 1, nil } // start has one
	servertest.Plateau{Server: s.Process, Addr: s.addr, Open: s.open, Count: count, AtRest: 1, AtMost: 5}.Run(t)
}

package redis_test

import (
	"testing"

	"github.com/tickflake/tickflake/internal/servertest"
)

// The package's doc has these bounds.
func TestConnectionsReachAPlateau(t *testing.T) {
	s := start(t)
	servertest.Plateau{Server: s.Process, Addr: s.addr, Open: s.open, AtRest: 2, AtMost: 5}.Run(t)
}

package resp

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// nowhere throws replies away.
type nowhere struct{ script }

func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkAnswer measures pipelines without the kernel: 16 commands in each.
func BenchmarkAnswer(b *testing.B) {
	for _, bench := range []struct{ name, in string }{
		{"ID", array("ID")}, {"IDS1000", array("IDS", "1000")}, {"INCR", array("INCR", "orders")}, {"PING", array("PING")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			bed := newBed(b, func(c *issuer.Config, _ *Limits) {
				c.Create[0].Definition = sequence.Definition{MinStep: 1e6}
			})
			c := newConn(bed.Server, &nowhere{})
			pipeline := strings.Repeat(bench.in, 16)
			c.take()
			kept := c.buffer
			b.ReportAllocs()
			for b.Loop() {
				c.buffer = kept
				c.have = copy(c.buffer.in, pipeline)
				require.NoError(b, c.answer())
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/16/float64(time.Nanosecond), "ns/command")
		})
	}
}

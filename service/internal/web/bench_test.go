package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// wide is a layout that does not bound a benchmark: 262,144 IDs in a millisecond.
func wide(t testing.TB) setup {
	l, err := snowflake.ParseLayout("41/4/18")
	require.NoError(t, err)
	return setup{generator: []generator.Option{generator.WithLayout(l)}}
}

// BenchmarkHandler is POST /v1/ids without a connection.
func BenchmarkHandler(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newServer(b, wide(b))
			r := httptest.NewRequest("POST", fmt.Sprintf("http://localhost/v1/ids?n=%d", n), nil)
			b.ReportAllocs()
			for b.Loop() {
				s.ServeHTTP(&discard{header: http.Header{}}, r)
			}
			perSecond(b, n)
		})
	}
}

// discard is a response that is not kept.
type discard struct {
	header http.Header
	size   int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { d.size += len(p); return len(p), nil }

func perSecond(b *testing.B, n int) {
	b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "IDs/s")
}

// h2c returns a client that speaks HTTP/2 without TLS.
func h2c(t testing.TB) *http.Client {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &p}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
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

// BenchmarkLoopback is POST /v1/ids?n=1000 over connections that are kept alive, with
// clients in the same process.
func BenchmarkLoopback(b *testing.B) {
	const n = 1000
	b.Run("http1", func(b *testing.B) {
		address := newServer(b, wide(b)).listen(b)
		request := fmt.Sprintf("POST /v1/ids?n=%d HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", n, address)
		b.SetParallelism(2)
		b.RunParallel(func(pb *testing.PB) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			in := bufio.NewReaderSize(conn, 64<<10)
			for pb.Next() {
				if err := roundTrip(conn, in, request); err != nil {
					b.Error(err)
					return
				}
			}
		})
		perSecond(b, n)
	})
	b.Run("h2c", func(b *testing.B) {
		address := newServer(b, wide(b)).listen(b)
		client := h2c(b)
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				answer, err := client.Post(fmt.Sprintf("http://%s/v1/ids?n=%d", address, n), "", nil)
				if err != nil {
					b.Error(err)
					return
				}
				size, err := io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if err != nil || answer.StatusCode != http.StatusOK || size < n*20 {
					b.Errorf("status %d, %d bytes, %v", answer.StatusCode, size, err)
					return
				}
			}
		})
		perSecond(b, n)
	})
}

// roundTrip sends a request, and reads its answer and throws it away.
func roundTrip(out io.Writer, in *bufio.Reader, request string) error {
	if _, err := io.WriteString(out, request); err != nil {
		return err
	}
	size, status := 0, ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if status == "" {
			status = line
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			fmt.Sscan(value, &size)
		}
		if line == "\r\n" {
			break
		}
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		return fmt.Errorf("answer %q", status)
	}
	_, err := in.Discard(size)
	return err
}

// h2c returns a client that speaks HTTP/2 without TLS.
func h2c(t testing.TB) *http.Client {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &p}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

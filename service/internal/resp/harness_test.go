package resp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

// bed is a server under test.
type bed struct{ *Server }

// newBed returns a server without a listener. Sequences whose names begin with "o" are made
// when they are asked for. Package service tests with listeners.
func newBed(t testing.TB, change func(*issuer.Config)) *bed {
	layout, err := snowflake.ParseLayout("41/4/18")
	require.NoError(t, err)
	layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // testing/synctest begins in 2000
	g, err := generator.New(generator.WithNode(3), generator.WithLayout(layout))
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	config := issuer.Config{
		Generator: g, Store: storetest.NewMemory(), Strategy: "reject", StoreName: "memory",
		Sequences: []sequence.Option{sequence.WithLogger(slog.New(slog.DiscardHandler))},
		Rules:     []issuer.Rule{{Prefix: "o"}}, Logger: slog.New(slog.DiscardHandler),
		Serve: seam.Serve{
			MaxBatch: 10_000, MaxNumbers: 1_000_000, MaxSequences: 100,
			Timeout: 2 * time.Second, UseWithin: time.Second, IdleTimeout: time.Hour, ReadTimeout: 10 * time.Second,
		},
	}
	require.NoError(t, sequence.Create(t.Context(), config.Store, "bills", sequence.Definition{Period: sequence.Yearly}))
	if change != nil {
		change(&config)
	}
	i := issuer.New(config)
	t.Cleanup(func() { assert.NoError(t, i.Close(context.Background())) })
	return &bed{New(i)}
}

// script is a connection whose client sends parts, and then closes its side. It needs no
// goroutine.
type script struct {
	net.Conn
	parts   []string
	written bytes.Buffer
}

func (s *script) Read(p []byte) (int, error) {
	for len(s.parts) > 0 && s.parts[0] == "" {
		s.parts = s.parts[1:]
	}
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.parts[0])
	s.parts[0] = s.parts[0][n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error)      { return s.written.Write(p) }
func (s *script) Close() error                     { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "client", Net: "unix"} }
func (s *script) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "server", Net: "unix"} }

// run answers parts on one connection, and returns all replies.
func (b *bed) run(parts ...string) string {
	s := &script{parts: parts}
	c := newConn(b.Server, s)
	c.out.try = s.Write
	c.serve()
	c.close()
	return s.written.String()
}

// array writes a command as clients do.
func array(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}

// matches checks a reply against a text in which N stands for a number, T for a time, and
// ... for anything. Lines end with a line feed there.
func matches(t testing.TB, want, got string) {
	t.Helper()
	pattern := regexp.QuoteMeta(strings.ReplaceAll(want, "\n", "\r\n"))
	pattern = strings.ReplaceAll(pattern, `<N>`, `\d+`)
	pattern = strings.ReplaceAll(pattern, `<T>`, `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	pattern = strings.ReplaceAll(pattern, `<any>`, `(?s:.*)`)
	assert.Regexp(t, "^"+pattern+"$", got)
}

// client returns a client whose token is token-NAME.
func client(name string, may issuer.Rights) *issuer.Client {
	return issuer.NewClient(name, sha256.Sum256([]byte("token-"+name)), may)
}

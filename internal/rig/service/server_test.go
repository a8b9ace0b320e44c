package service

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	rigserver "github.com/tickflake/tickflake/internal/rig/server"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/service/servicetest"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

// served is a server that speaks only the Redis protocol, with the sequences tickets
// (segmented) and orders (ordered). It logs every request.
type served struct {
	t      *testing.T
	config service.Config
	port   int
	log    rigserver.Output
	away   atomic.Bool // the store of the sequences cannot be reached
	stop   func()
}

// serve starts a server, which ends with the test. change may be nil.
func serve(t *testing.T, change func(*service.Config), options ...generator.Option) *served {
	t.Helper()
	gen, err := generator.New(append([]generator.Option{generator.WithNode(1)}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, gen.Close()) })
	store := storetest.NewMemory()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s := &served{t: t}
	store.Before = func(context.Context, storetest.Op) storetest.Fault {
		if s.away.Load() {
			return storetest.Unavailable
		}
		return storetest.None
	}
	create(t, store)
	s.config = service.Config{
		Generator: gen, Store: store, AccessLog: 1,
		Logger: slog.New(slog.NewJSONHandler(&s.log, nil)),
	}
	if change != nil {
		change(&s.config)
	}
	s.start()
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("the server logged:\n%.5000s", s.log.String())
		}
	})
	return s
}

func create(t *testing.T, store stores.Store) {
	t.Helper()
	require.NoError(t, sequence.Create(t.Context(), store, "tickets", sequence.Definition{Start: 1}))
	require.NoError(t, sequence.Create(t.Context(), store, "orders", sequence.Definition{Mode: sequence.Ordered, Start: 1}))
}

// start serves on the port of the last time, or on a free one.
func (s *served) start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	require.NoError(s.t, err)
	s.port = listener.Addr().(*net.TCPAddr).Port
	config := s.config
	config.RESP = listener
	server, err := service.New(config)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("Run: %v", err)
		}
	})
}

// requests returns how many requests with this method and code the server has logged. The
// code of a request that was served is empty.
func (s *served) requests(method, code string) (n int) {
	s.t.Helper()
	for line := range strings.Lines(s.log.String()) {
		var request struct{ Msg, Method, Code string }
		require.NoError(s.t, json.Unmarshal([]byte(line), &request), line)
		if strings.HasPrefix(request.Msg, "request") && request.Method == method && request.Code == code {
			n++
		}
	}
	return n
}

// complaints returns the lines of the log that are warnings or errors.
func (s *served) complaints() (lines []string) {
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// authority returns a certificate of a new authority for 127.0.0.1, and the path of the
// authority's own.
func authority(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	a, files := servicetest.NewAuthority(t), servicetest.NewFiles(t)
	certificate, key := a.Issue(t, "localhost", servicetest.ForServers, time.Hour)
	files.Put(t, certificate, key, a.PEM())
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	return pair, files.ClientCA()
}

package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/observe"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/storetest"
)

// document is the OpenAPI document of the service.
var document = sync.OnceValues(func() (*openapi3.T, error) {
	content, err := static.ReadFile("static/openapi.yaml")
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(content)
})

// conforms returns an error unless the document allows the answer. Paths and methods that
// are not in the document have to get a problem of the status 404 or 405, if nothing else is
// wrong with the request.
func conforms(method, path string, answer *http.Response, body []byte) error {
	doc, err := document()
	if err != nil {
		return err
	}
	item := doc.Paths.Value(template(path))
	operation := (*openapi3.Operation)(nil)
	if item != nil {
		if operation = item.GetOperation(method); method == "HEAD" {
			operation = item.Get
		}
	}
	if operation == nil {
		operation = elsewhere(doc, item != nil)
	}
	r, err := http.NewRequest(method, "http://localhost/", nil)
	if err != nil {
		return err
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r,
			Route:   &routers.Route{Spec: doc, PathItem: item, Operation: operation, Method: method},
		},
		Status: answer.StatusCode, Header: answer.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	return openapi3filter.ValidateResponse(context.Background(), input.SetBodyBytes(body))
}

// template returns the path of the document that a path belongs to.
func template(path string) string {
	for _, prefix := range []string{"/v1/ids/{id}", "/v1/sequences/{name}"} {
		fixed, _, _ := strings.Cut(prefix, "{")
		if rest, ok := strings.CutPrefix(path, fixed); ok && rest != "" && !strings.Contains(rest, "/") && rest != "." && rest != ".." {
			return prefix
		}
	}
	return path
}

// elsewhere is the operation of a path, or of a method, that is not in the document.
func elsewhere(doc *openapi3.T, path bool) *openapi3.Operation {
	problem := doc.Components.Responses["Problem"]
	o := &openapi3.Operation{Responses: openapi3.NewResponses(openapi3.WithStatus(403, problem), openapi3.WithStatus(421, problem))}
	o.Responses.Delete("default")
	if path {
		o.Responses.Set("405", doc.Components.Responses["Method"])
	} else {
		o.Responses.Set("404", problem)
	}
	return o
}

// setup is what a test changes of the server.
type setup struct {
	generator []generator.Option
	config    issuer.Config
	options   Options
	sample    int64
}

// service is a server of a test, with the log that it writes.
type service struct {
	*Server
	store *storetest.Memory
	log   *buffer
}

// newServer returns a server of a real generator, and of the sequences orders and tickets.
func newServer(t testing.TB, s setup) *service {
	g, err := generator.New(append([]generator.Option{generator.WithNode(1)}, s.generator...)...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	store := storetest.NewMemory()
	t.Cleanup(func() { store.Close() })
	require.NoError(t, sequence.Create(t.Context(), store, "orders", sequence.Definition{Start: 1}))
	require.NoError(t, sequence.Create(t.Context(), store, "tickets", sequence.Definition{Mode: sequence.Ordered, Start: 1, Max: 3}))
	log := new(buffer)
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))

	c := s.config
	c.Generator, c.Store, c.Strategy = g, store, "wait up to 1s"
	c.Sequences = []sequence.Option{sequence.WithLogger(logger)}
	c.MaxBatch, c.MaxNumbers, c.MaxSequences = cmp.Or(c.MaxBatch, 10_000), 1_000_000, 10
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.UseWithin = time.Second
	c.ReadTimeout = cmp.Or(c.ReadTimeout, time.Minute)
	i, err := issuer.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, i.Close(context.Background())) })

	l := s.options
	l.Logger = logger
	if l.Metrics == nil {
		l.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up 1\n") })
	}
	return &service{New(i, observe.New(logger, s.sample), l), store, log}
}

// listen serves on a loopback address until the test ends, and returns the address.
func (s *service) listen(t testing.TB) string {
	address, served := s.start(t)
	t.Cleanup(func() {
		assert.NoError(t, s.Shutdown(context.Background()))
		assert.NoError(t, <-served)
	})
	return address
}

// start serves on a loopback address. The channel has the result of Serve.
func (s *service) start(t testing.TB) (address string, served chan error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served = make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	return l.Addr().String(), served
}

// buffer is a log that goroutines share.
type buffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{} // closed by the next line; nil: nobody waits
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// wait returns when the log contains the text so many times.
func (b *buffer) wait(t testing.TB, text string, times int) {
	for {
		b.mu.Lock()
		if strings.Count(b.b.String(), text) >= times {
			b.mu.Unlock()
			return
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			require.Fail(t, "the log never had the line", "%q in:\n%s", text, b)
		}
	}
}

// answer is an answer that conforms to the document.
type answer struct {
	*http.Response
	body string
}

// ask sends a request straight to the handlers, and checks the answer against the document.
// The headers are given as texts such as "Accept: text/plain".
func (s *service) ask(t testing.TB, method, target string, headers ...string) answer {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "localhost:8380"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	return s.serve(t, r)
}

func (s *service) serve(t testing.TB, r *http.Request) answer {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	got := answer{w.Result(), w.Body.String()}
	require.NoError(t, conforms(r.Method, r.URL.EscapedPath(), got.Response, w.Body.Bytes()), "%s %s: %d %s", r.Method, r.URL, got.StatusCode, got.body)
	safe(t, got)
	return got
}

// safe checks what every answer has.
func safe(t testing.TB, got answer) {
	assert.Equal(t, "no-store", got.Header.Get("Cache-Control"))
	assert.Equal(t, "nosniff", got.Header.Get("X-Content-Type-Options"))
	assert.Contains(t, got.Header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.NotContains(t, got.Header.Get("Content-Security-Policy"), "unsafe")
	for name := range got.Header {
		assert.NotContains(t, name, "Access-Control", "another site's page may read this answer")
	}
}

// decode reads the body of an answer.
func decode[T any](t testing.TB, got answer) (value T) {
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	require.NoError(t, json.Unmarshal([]byte(got.body), &value))
	return value
}

// refusal reads the problem of an answer.
func refusal(t testing.TB, got answer) (p problem) {
	require.Equal(t, "application/problem+json", got.Header.Get("Content-Type"), got.body)
	require.NoError(t, json.Unmarshal([]byte(got.body), &p))
	assert.Equal(t, got.StatusCode, p.Status)
	assert.Equal(t, http.StatusText(got.StatusCode), p.Title)
	return p
}

// credential returns a client that may do everything, after change.
func credential(name, token string, change func(*issuer.Credential)) issuer.Credential {
	c := issuer.Credential{Name: name, Token: sha256.Sum256([]byte(token)), Sequences: []string{"*"}}
	if change != nil {
		change(&c)
	}
	return c
}

// raw sends bytes over a connection, and reads the answer to the end of the connection.
func raw(t testing.TB, address, request string) answer {
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	method, _, _ := strings.Cut(request, " ")
	r, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return answer{r, string(body)}
}

// wide is a layout that does not bound a benchmark: 262,144 IDs in a millisecond.
func wide(t testing.TB) setup {
	l, err := snowflake.ParseLayout("41/4/18")
	require.NoError(t, err)
	return setup{generator: []generator.Option{generator.WithLayout(l)}}
}

package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
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
	"github.com/tickflake/tickflake/internal/seam"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/stores/storetest"
)

// document is the OpenAPI document of the service.
var document = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData([]byte(openapi))
})

// conforms returns an error unless the document allows the answer. Paths and methods that
// are not in the document have to get a problem, whose fields refusal knows.
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
		if !slices.Contains([]int{403, 404, 405, 421}, answer.StatusCode) || answer.Header.Get("Content-Type") != "application/problem+json" {
			return errors.New("want a problem: it is not in the document")
		}
		return nil
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

// service is a server of a test, with its log, whose sequences are orders and tickets.
type service struct {
	*Server
	log *bytes.Buffer
}

// newServer returns a server without a listener. Package service tests with listeners.
func newServer(t testing.TB, change func(*issuer.Config, *Options)) *service {
	g, err := generator.New(generator.WithNode(1))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	store, log := storetest.NewMemory(), new(bytes.Buffer)
	require.NoError(t, sequence.Create(t.Context(), store, "orders", sequence.Definition{}))
	require.NoError(t, sequence.Create(t.Context(), store, "tickets", sequence.Definition{Mode: sequence.Ordered, Max: 3}))
	require.NoError(t, sequence.Create(t.Context(), store, "bills", sequence.Definition{Period: sequence.Yearly}))
	c := issuer.Config{
		Generator: g, Store: store, Strategy: "wait up to 1s", StoreName: "memory", Sequences: []sequence.Option{sequence.WithLogger(slog.New(slog.DiscardHandler))},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
		Serve: seam.Serve{
			Hosts: []string{"ids.example.com"}, ReadTimeout: 10 * time.Second, MaxBatch: 10_000, MaxAfter: 10 * time.Millisecond, MaxNumbers: 1_000_000,
			MaxSequences: 10, Timeout: time.Minute, UseWithin: time.Second, AccessLog: 1,
		},
	}
	o := Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })}
	if change != nil {
		change(&c, &o)
	}
	i := issuer.New(c)
	t.Cleanup(func() { assert.NoError(t, i.Close(context.Background())) })
	return &service{New(i, o), log}
}

// clients are those of a server that asks for tokens.
func clients(c *issuer.Config, _ *Options) {
	for token, may := range map[string]issuer.Rights{
		ordersToken: {IDs: true, Metrics: true, Sequences: []string{"orders"}}, ticketsToken: {Sequences: []string{"tick*"}}, metricsToken: {Metrics: true},
	} {
		c.Clients = append(c.Clients, issuer.NewClient(token[:6], sha256.Sum256([]byte(token)), may))
	}
}

const ordersToken, ticketsToken, metricsToken = "orders-token-123456", "tickets-token-12345", "metrics-token-12345"

// answer is an answer that conforms to the document.
type answer struct {
	*http.Response
	body string
}

// ask sends a request straight to the handlers, and checks the answer against the document.
// The headers are given as texts such as "Accept: text/plain".
func (s *service) ask(t testing.TB, method, target string, headers ...string) answer {
	host := "Host: localhost:8380\r\n"
	if strings.HasPrefix(strings.Join(headers, ""), "Host:") {
		host = ""
	}
	return s.send(t, method+" "+target+" HTTP/1.1\r\n"+host+strings.Join(append(headers, "\r\n"), "\r\n"))
}

// send sends the bytes of a request.
func (s *service) send(t testing.TB, bytes string) answer {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(bytes)))
	require.NoError(t, err, bytes)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	got := answer{w.Result(), w.Body.String()}
	require.NoError(t, conforms(r.Method, r.URL.EscapedPath(), got.Response, w.Body.Bytes()), "%s %s: %d %s", r.Method, r.URL, got.StatusCode, got.body)
	assert.Equal(t, "no-store", got.Header.Get("Cache-Control"))
	assert.Equal(t, "nosniff", got.Header.Get("X-Content-Type-Options"))
	assert.Contains(t, got.Header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.NotContains(t, got.Header.Get("Content-Security-Policy"), "unsafe")
	for name := range got.Header {
		assert.NotContains(t, name, "Access-Control", "another site's page may read this answer")
	}
	return got
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

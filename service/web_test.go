package service_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/snowflake"
)

// document is the OpenAPI document of the service.
var document = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := os.ReadFile("internal/web/static/openapi.yaml")
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(text)
})

// paths finds the operation of a request in the document, which has to be valid.
var paths = sync.OnceValues(func() (routers.Router, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

// conforms returns an error unless the document allows the answer. Paths and methods that are not in the document have to get
// a problem.
func conforms(method, target string, answer *http.Response, body []byte) error {
	all, err := paths()
	if err != nil {
		return err
	}
	r, err := http.NewRequest(strings.Replace(method, "HEAD", "GET", 1), target, nil)
	if err != nil {
		return err
	}
	route, params, err := all.FindRoute(r)
	r.Method = method
	if id, given := params["id"]; err != nil || given && id == "" { // of another path, for the router
		if !slices.Contains([]int{403, 404, 421}, answer.StatusCode) || answer.Header.Get("Content-Type") != "application/problem+json" {
			return errors.New("want a problem: it is not in the document")
		}
		return nil
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route},
		Status:                 answer.StatusCode, Header: answer.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	return openapi3filter.ValidateResponse(context.Background(), input.SetBodyBytes(body))
}

// answer is an answer that conforms to the document.
type answer struct {
	*http.Response
	body string
}

// ask makes a request on a connection of its own. The headers are given as texts such as "Origin: http://localhost", and what
// comes after an empty one is the body.
func (r *running) ask(method, target string, headers ...string) answer {
	r.t.Helper()
	if !strings.HasPrefix(strings.Join(headers, ""), "Host:") {
		headers = append([]string{"Host: localhost:8380"}, headers...)
	}
	if !slices.Contains(headers, "") {
		headers = append(headers, "", "")
	}
	got, body := r.request(web, method, target, headers...)
	if got.StatusCode == http.StatusBadRequest && got.Header.Get("Content-Type") != "application/problem+json" {
		return answer{got, body} // of net/http, which could not read the request
	}
	require.NoError(r.t, conforms(method, target, got, []byte(body)), "%s %s: %d %s", method, target, got.StatusCode, body)
	assert.Equal(r.t, "no-store", got.Header.Get("Cache-Control"))
	assert.Equal(r.t, "nosniff", got.Header.Get("X-Content-Type-Options"))
	assert.Equal(r.t, "same-origin", got.Header.Get("Cross-Origin-Resource-Policy"))
	assert.Equal(r.t, "default-src 'none'; frame-ancestors 'none'", got.Header.Get("Content-Security-Policy"))
	for name := range got.Header {
		assert.NotContains(r.t, name, "Access-Control", "another site's page may read this answer")
	}
	return answer{got, body}
}

// startWeb starts a service that has one sequence more: tickets, which is ordered and ends at 3.
func startWeb(t *testing.T, change func(*service.Config)) *running {
	r := start(t, listen, change)
	require.NoError(t, sequence.Create(t.Context(), r.store, "tickets", sequence.Definition{Mode: sequence.Ordered, Max: 3}))
	return r
}

// What each route answers: N stands for a number, ID for the ID of the first request, and T for its time.
func TestAnswersOfHTTP(t *testing.T) {
	t.Parallel()
	r := startWeb(t, nil)
	id := strings.Trim(r.ask("POST", "/v1/ids").body, "{}[]\"ids:\n")
	_, err := snowflake.Parse(id)
	require.NoError(t, err)
	pattern := strings.NewReplacer("ID", id, `"T"`, `"2[-0-9T:.]*Z"`, "N", `[0-9.e-]+`)
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/v1/ids/" + id, `{"id":"ID","time":"T","node":1,"parts":{},"sequence":N}`},
		{"POST", "/v1/ids?after=" + id + "&n=2", `{"ids":\["N","N"\]}`},
		{"POST", "/v1/sequences/orders", `{"name":"orders","mode":"segmented","first":"1","last":"1","count":1,"stride":1}`},
		{"POST", "/v1/sequences/orders?n=10", `{"name":"orders","mode":"segmented","first":"2","last":"11","count":10,"stride":1}`},
		{"POST", "/v1/sequences/tickets?n=3", `{"name":"tickets","mode":"ordered","first":"1","last":"3","count":3,"stride":1}`},
		{"GET", "/readyz", `ok\nclock_error:\S+`},
		{"GET", "/livez", `ok`},
		{"GET", "/metrics", `(?s).*tickflake_service_items_total{.*protocol="http"} 17\n.*`},
	} {
		got := r.ask(c.method, c.target)
		assert.Regexp(t, "^"+pattern.Replace(c.want)+"\n$", got.body, c.target)
		if c.method == "GET" && c.target != "/metrics" {
			assert.Equal(t, got.Header.Get("Content-Length"), r.ask("HEAD", c.target).Header.Get("Content-Length"))
		}
	}
}

// Only names of the server are answered: a page whose name its owner points to the server's address is of the same origin for the
// browser. Probes tell nothing, and a load balancer has names of its own.
func TestHost(t *testing.T) {
	t.Parallel()
	r := startWeb(t, func(c *service.Config) { c.Hosts = []string{"ids.example.com"} })
	for host, status := range map[string]int{
		"127.0.0.1": 200, "127.0.0.2": 200, "localhost": 200, "localhost:1": 200, "ids.example.com": 200, // the port may be forwarded
		"[::1]": 200, "[2001:db8::1]:443": 200, "[::ffff:127.0.0.1]:8380": 200,
		"":             200, // no browser leaves it out; old health checks do
		"evil.example": 421, "ids.example.com.evil.example": 421, "localhost.evil.example": 421,
		"0.0.0.0": 421, "[::ffff:0.0.0.0]:8380": 421, "localhost:8380:8380": 421,
	} {
		for path, want := range map[string]int{"/": status, "/nowhere": max(status, 404), "/livez": 200, "/readyz": 200} {
			got := r.ask("GET", path, "Host: "+host)
			assert.Equal(t, want, got.StatusCode, "%s of %s: %s", path, host, got.body)
			assert.NotContains(t, got.body, "evil")
		}
	}
	assert.Equal(t, 421, r.ask("GET", "http://evil.example/").StatusCode, "a proxy's form of the address names the host as well")
}

// A page of another site gets no ID. Package net/http has the table of what comes from another site.
func TestOrigin(t *testing.T) {
	t.Parallel()
	r := startWeb(t, nil)
	for header, status := range map[string]int{
		"Origin: http://localhost:8380": 200, "Sec-Fetch-Site: same-origin": 200,
		"Origin: http://localhost:8381": 403, "Origin: null": 403, "Sec-Fetch-Site: same-site": 403, // a file, or another port
	} {
		got := r.ask("POST", "/v1/ids", "Host: localhost:8380", header)
		assert.Equal(t, status, got.StatusCode, "%s: %s", header, got.body)
		assert.Equal(t, status == 403, strings.Contains(got.body, `"code":"forbidden"`))
	}
	assert.Regexp(t, `(?m)^tickflake_service_items_total{.*protocol="http"} 2$`, r.metrics(""))
}

// The document has the routes of the server and no others. Where the server has clients, a request without a
// token, or with a bad one, is answered only by those that the document says need none.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := document()
	require.NoError(t, err)
	r := startWeb(t, func(c *service.Config) {
		c.Clients = []service.Client{{Name: "shop", Tokens: []string{shop}, Metrics: true, Sequences: []string{"*"}}}
	})
	example := strings.NewReplacer("{id}", "1", "{name}", "tickets")
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			open := operation.Security != nil && len(*operation.Security) == 0
			for _, bad := range []string{"Authorization: ", "Authorization: Bearer", "Authorization: Bearer " + stray, "Authorization: " + shop, "Authorization: Basic " + shop,
				"Authorization: Bearer " + shop + " " + shop, "Authorization: Bearer " + shop + "\r\nAuthorization: Bearer " + shop} {
				got := r.ask(method, example.Replace(path), bad)
				assert.Equal(t, map[bool]int{true: 200, false: 401}[open], got.StatusCode, "%s %s, %q: %s", method, path, bad, got.body)
				assert.Equal(t, !open, strings.HasPrefix(got.Header.Get("WWW-Authenticate"), "Bearer"))
				assert.NotContains(t, got.body, shop)
			}
			assert.Equal(t, 200, r.ask(method, example.Replace(path), "Authorization: bearer "+shop).StatusCode, "%s %s", method, path)
		}
	}
	assert.Equal(t, 401, r.ask("POST", "/v1/ids?token="+shop).StatusCode, "a token in an address ends in logs")
	kept, err := http.ReadResponse(bufio.NewReader(r.connect(web, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")), nil)
	require.NoError(t, err)
	assert.True(t, kept.Close, "a connection without a token ends with its request, and not in the next")
	assert.NotContains(t, r.log(), shop)
}

// Each bad request gets its status and a text that says what to do, and no ID or number.
func TestRefused(t *testing.T) {
	t.Parallel()
	r := startWeb(t, nil)
	long := strings.Repeat("9", 5000)
	for _, c := range []struct {
		method, target string
		status         int
		text           string
	}{
		{"POST", "/v1/ids?n=abc", 400, `n \"abc\" is not an integer or out of range: want up to 19 decimal digits`},
		{"POST", "/v1/ids?n=", 400, `n has no value: want n=NUMBER`},
		{"POST", "/v1/ids?n=" + long, 400, `\"99999999999999999999\" is not an integer or out of range`},
		{"POST", "/v1/ids?n=1&n=2", 400, "n is given 2 times"},
		{"POST", "/v1/ids?count=5", 400, `parameter \"count\" is not known: want n or after, or none`},
		{"POST", "/v1/ids?" + long + "=5", 400, `parameter \"99999999999999999999\" is not known`},
		{"POST", "/v1/ids?n=1&after=-5", 400, "decimal ID"},
		{"POST", "/v1/ids?after=9123372036854775807", 429, "IDs above the seen ID 9123372036854775807 begin"},
		{"POST", "/v1/ids?after=9223372036854775807", 409, "the layout has no ID above the seen ID 9223372036854775807"},
		{"POST", "/v1/sequences/orders?after=1", 400, `parameter \"after\" is not known: want n, or none`},
		{"POST", "/v1/ids?n=1;n=2", 400, "cannot be read"},
		{"GET", "/v1/ids/abc", 400, "decimal ID"},
		{"GET", "/v1/ids/9223372036854775808", 400, "exceeds"},
		{"GET", "/v1/ids", 404, "no such path with this method"},
		{"HEAD", "/v1/ids", 404, ""},
		{"GET", "/<a>", 404, "no such path"},
	} {
		name := c.method + " " + c.target[:min(len(c.target), 60)]
		got := r.ask(c.method, c.target)
		assert.Equal(t, c.status, got.StatusCode, name)
		assert.Equal(t, "application/problem+json", got.Header.Get("Content-Type"), name)
		if c.method != "HEAD" {
			assert.Contains(t, got.body, c.text, name)
		}
		assert.NotContains(t, got.body, "<", name)
		assert.Equal(t, c.status == http.StatusTooManyRequests, got.Header.Get("Retry-After") != "", name)
	}
	for header, body := range map[string]string{ // to ignore a body would give one ID to "curl -d n=10"
		"Content-Length: 4":                                           "n=10",
		"Transfer-Encoding: chunked":                                  "1\r\nn\r\n0\r\n\r\n",
		"Transfer-Encoding:  chunked":                                 "zz\r\n",
		"Content-Length: 200000":                                      strings.Repeat(" ", 2000),
		"Content-Length: 8\r\nA: a\r\nContent-Type: application/json": `{"n": 2}`,
	} {
		for _, path := range []string{"/v1/ids", "/v1/sequences/orders"} {
			got := r.ask("POST", path, header, "", body)
			assert.Equal(t, 400, got.StatusCode, "%s: %s", header, got.body)
			assert.Contains(t, got.body, "a body is not served: send none")
		}
	}
	assert.Regexp(t, `(?m)^tickflake_service_items_total{.*protocol="http"} 0$`, r.metrics(""))
	for _, empty := range [][]string{{"Content-Length: 0", "", ""}, {"Transfer-Encoding: chunked", "", "0\r\n\r\n"}} {
		assert.Equal(t, 200, r.ask("POST", "/v1/ids", empty...).StatusCode)
	}
}

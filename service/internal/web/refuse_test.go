package web

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

// A page whose name its owner points to this server's address is of the same origin for the
// browser, so only names of this server are answered.
func TestHost(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for host, status := range map[string]int{
		"127.0.0.1":                    200,
		"localhost":                    200,
		"localhost:1":                  200, // forwarded
		"ids.example.com":              200,
		"evil.example":                 421,
		"ids.example.com.evil.example": 421,
		"localhost.evil.example":       421,
		"127.0.0.2":                    200,
		"0.0.0.0":                      421,
		"[::1]":                        200,
		"[2001:db8::1]:443":            200,
		"[::%lo]":                      421,
		"[::ffff:0.0.0.0]:8380":        421,
		"[::ffff:127.0.0.1]:8380":      200,
		"localhost:8380:8380":          421,
		"":                             200, // no browser leaves it out; old health checks do
	} {
		for _, path := range []string{"/livez", "/readyz", "/", "/nowhere"} {
			want := status
			if path == "/nowhere" && status == 200 {
				want = 404
			} else if strings.HasSuffix(path, "z") {
				want = 200 // a load balancer has names of its own, and the answer tells nothing
			}
			got := s.ask(t, "GET", path, "Host: "+host)
			assert.Equal(t, want, got.StatusCode, "%s of %s: %s", path, host, got.body)
			assert.False(t, want == 421 && strings.Contains(got.body, "evil"), got.body)
		}
	}
	// A proxy's form of the address names the host as well.
	assert.Equal(t, 421, s.ask(t, "GET", "http://evil.example/").StatusCode)
	assert.Equal(t, 404, s.ask(t, "OPTIONS", "*").StatusCode)
}

// A page of another site gets neither an answer nor an ID.
func TestOrigin(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	navigation := "Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: document"
	for _, c := range []struct {
		method, target, headers string
		status                  int
	}{
		{"POST", "/v1/ids", "", 200}, // curl
		{"POST", "/v1/ids", "Origin: http://localhost:8380", 200},
		{"POST", "/v1/ids", "Origin: http://localhost:8380|Sec-Fetch-Site: same-origin", 200},
		{"GET", "/v1/status", "Sec-Fetch-Site: same-origin", 200},
		{"GET", "/", "Sec-Fetch-Site: none|" + navigation, 200}, // typed by a person

		{"POST", "/v1/ids", "Origin: http://evil.example", 403},
		{"GET", "/v1/ids/1", "Origin: http://evil.example", 403},
		{"OPTIONS", "/v1/ids", "Origin: http://evil.example|Access-Control-Request-Method: POST", 403},
		{"POST", "/v1/ids", "Origin: null", 403}, // a file, or a frame in a sandbox
		{"POST", "/v1/ids", "Origin: http://localhost:8381", 403},
		{"POST", "/v1/ids", "Origin: http://localhost:8380@evil.example", 403},
		{"POST", "/v1/ids", "Origin: http://localhost:8380|Origin: http://evil.example", 403},
		{"POST", "/v1/ids", "Origin: http://localhost:8380|Sec-Fetch-Site: cross-site", 403},
		{"POST", "/v1/ids", "Sec-Fetch-Site: cross-site", 403},
		{"POST", "/v1/ids", "Sec-Fetch-Site: same-site", 403},                // another port of this machine
		{"POST", "/v1/ids", "Sec-Fetch-Site: cross-site|" + navigation, 403}, // a form
		{"GET", "/v1/ids/1", "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: no-cors|Sec-Fetch-Dest: image", 403},
		{"GET", "/", "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: iframe", 403},
	} {
		before := s.issuer.Items()
		var headers []string
		if c.headers != "" {
			headers = strings.Split(c.headers, "|")
		}
		got := s.ask(t, c.method, c.target, headers...)
		assert.Equal(t, c.status, got.StatusCode, "%s %s, %s: %s", c.method, c.target, c.headers, got.body)
		if c.status == 403 {
			assert.Equal(t, "forbidden", refusal(t, got).Code)
			assert.Equal(t, before, s.issuer.Items(), c.headers)
		}
	}
	page := s.ask(t, "GET", "/").Header
	assert.Contains(t, page.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	assert.Equal(t, "same-origin", page.Get("Cross-Origin-Resource-Policy"))
}

// Where the server has clients, only routes that are open are answered without a token, and
// a client gets what it may have. No token appears in an answer or in the log.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := newServer(t, clients)
	var seen strings.Builder
	ask := func(method, target string, headers ...string) answer {
		got := s.ask(t, method, target, headers...)
		seen.WriteString(got.body)
		_ = got.Header.Write(&seen)
		return got
	}
	example := strings.NewReplacer("{id}", "1", "{name}", "orders", "{$}", "")
	for _, r := range s.list() {
		method, target, _ := strings.Cut(example.Replace(r.pattern), " ")
		for _, bad := range [][]string{
			nil, {"Authorization: "}, {"Authorization: Bearer"}, {"Authorization: Bearer wrong-token-9876543"},
			{"Authorization: " + ordersToken}, {"Authorization: Basic " + ordersToken}, {"Authorization: Bearer " + ordersToken + " " + ordersToken},
			{"Authorization: Bearer " + ordersToken, "Authorization: Bearer " + ordersToken},
		} {
			got := ask(method, target, bad...)
			if r.need == nothing {
				assert.Equal(t, http.StatusOK, got.StatusCode, "%s, %q", r.pattern, bad)
				continue
			}
			assert.Equal(t, http.StatusUnauthorized, refusal(t, got).Status, "%s, %q", r.pattern, bad)
			assert.Contains(t, got.Header.Get("WWW-Authenticate"), "Bearer", "%s, %q", r.pattern, bad)
		}
		assert.Equal(t, http.StatusOK, ask(method, target, "Authorization: bearer "+ordersToken).StatusCode, "%s", r.pattern)
		for token, allowed := range map[string]need{metricsToken: metrics, ticketsToken: token} {
			if got := ask(method, target, "Authorization: Bearer "+token); r.need != nothing && r.need != allowed {
				assert.Equal(t, "forbidden", refusal(t, got).Code, "%s, %s", r.pattern, token)
			}
		}
	}
	assert.Equal(t, http.StatusUnauthorized, ask("POST", "/v1/ids?token="+ordersToken).StatusCode, "a token in an address ends in logs")
	assert.Equal(t, http.StatusOK, ask("POST", "/v1/sequences/tickets", "Authorization: Bearer "+ticketsToken).StatusCode)

	// Both sequences are open by now; each client sees its own.
	for token, name := range map[string]string{ordersToken: "orders", ticketsToken: "tickets"} {
		got := decode[status](t, ask("GET", "/v1/status", "Authorization: Bearer "+token))
		if assert.Len(t, got.Sequences, 1) {
			assert.Equal(t, name, got.Sequences[0].Name)
		}
	}
	for _, token := range []string{ordersToken, ticketsToken} {
		assert.NotContains(t, seen.String()+s.log.String(), token)
	}
	assert.Contains(t, s.log.String(), `method="POST /v1/sequences/{name}"`)
}

// Each bad request gets its status and a text that says what to do, and no ID or number.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	long := strings.Repeat("9", 5000)
	for _, c := range []struct {
		method, target string
		status         int
		text           string
	}{
		{"POST", "/v1/ids?n=abc", 400, `n "abc" is not an integer or out of range: want up to 19 decimal digits`},
		{"POST", "/v1/ids?n=", 400, `n has no value: want n=NUMBER`},
		{"POST", "/v1/ids?after=", 400, "after has no value"},
		{"POST", "/v1/ids?n=" + long, 400, `"99999999999999999999" is not an integer or out of range`},
		{"POST", "/v1/ids?n=1&n=2", 400, "n is given 2 times"},
		{"POST", "/v1/ids?count=5", 400, `parameter "count" is not known: want n or after, or none`},
		{"POST", "/v1/ids?" + long + "=5", 400, `parameter "99999999999999999999" is not known`},
		{"POST", "/v1/ids?after=x", 400, "decimal ID"},
		{"POST", "/v1/ids?n=1&after=-5", 400, "decimal ID"},
		{"POST", "/v1/ids?after=1&after=2", 400, "after is given 2 times"},
		{"POST", "/v1/ids?after=9123372036854775807", 429, "IDs above the seen ID 9123372036854775807 begin"},
		{"POST", "/v1/ids?after=9223372036854775807", 409, "the layout has no ID above the seen ID 9223372036854775807"},
		{"POST", "/v1/sequences/orders?after=1", 400, `parameter "after" is not known: want n, or none`},
		{"POST", "/v1/ids?n=1;n=2", 400, "cannot be read"},
		{"POST", "/v1/ids?n=%zz", 400, "cannot be read"},
		{"GET", "/v1/ids/abc", 400, "decimal ID"},
		{"GET", "/v1/ids/9223372036854775808", 400, "exceeds"},
		{"POST", "/v1/sequences/tickets?n=4", 409, "3 numbers left"},
		{"GET", "//a", 404, "no such path"},
		{"POST", "/v1/ids/../ids", 404, "no such path"},
		{"GET", "/v1/ids", 405, `"GET" is not one of this path: want POST`},
		{"HEAD", "/v1/ids", 405, ""},
		{"DELETE", "/v1/sequences/orders", 405, "want GET, HEAD, POST"},
		{"BREW" + strings.Repeat("W", 100), "/v1/ids", 405, `"BREWWWWWWWWWWWWWWWWW" is not one`},
	} {
		name := c.method + " " + c.target
		name = name[:min(len(name), 60)]
		got := s.ask(t, c.method, c.target)
		p := refusal(t, got)
		assert.Equal(t, c.status, p.Status, name)
		if c.method != "HEAD" {
			assert.Contains(t, p.Detail, c.text, name)
		}
		assert.NotContains(t, got.body, "<", name)
		assert.Equal(t, c.status == http.StatusMethodNotAllowed, got.Header.Get("Allow") != "", name)
		assert.Equal(t, c.status == http.StatusTooManyRequests, got.Header.Get("Retry-After") != "", name)
	}
	assert.Zero(t, s.issuer.Items())
	assert.Equal(t, "GET, HEAD, POST", s.ask(t, "PUT", "/v1/sequences/orders").Header.Get("Allow"))
}

// A body has the parameters in JSON. Any other means something that is not served: to ignore it would give
// one ID to "curl -d n=10".
func TestBody(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for _, c := range []struct {
		header, body string
		status       int
	}{
		{"A: b", "", 200},
		{"Content-Length: 0", "", 200},
		{"Transfer-Encoding: chunked", "0\r\n\r\n", 200},
		{"Content-Length: 4", "n=10", 400},
		{"Transfer-Encoding: chunked", "1\r\nn\r\n0\r\n\r\n", 400},
		{"Transfer-Encoding: chunked", "zz\r\n", 400},
		{"Content-Length: 9223372036854775807", strings.Repeat(" ", 2000), 400},
		{"Content-Length: 9\r\nContent-Type: application/json", `{"n": 10}`, 200},
		{"Content-Length: 9\r\nContent-Type: application/json; charset=utf-8", `{"n":"7"}`, 200},
		{"Content-Length: 9", `{"n": 10}`, 400},
		{"Content-Length: 1025\r\nContent-Type: application/json", `{"n":2` + strings.Repeat(" ", 1018) + `}`, 400},
	} {
		for _, path := range []string{"/v1/ids", "/v1/sequences/orders"} {
			got := s.send(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+c.header+"\r\n\r\n"+c.body)
			assert.Equal(t, c.status, got.StatusCode, "%s: %s", c.header, got.body)
			assert.Equal(t, c.status == 400, strings.Contains(got.body, "the body is not served"), got.body)
			if n := regexp.MustCompile(`\d+`).FindString(c.body); c.status == 200 && n > "1" {
				assert.Regexp(t, `"count":`+n+`,|^{"ids":\[("\d+",){`+n+`}`, strings.Replace(got.body, `"]`, `",`, 1))
			}
		}
	}
	for _, body := range []string{`{"n":2}}`, `{"n":2} {}`, `{"n":[1]}`, `{"n":null}`, `{"m":10}`, "null", "[]", "2"} {
		got := s.send(t, fmt.Sprintf("POST /v1/ids HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nContent-Type: application/json\r\n\r\n%s", len(body), body))
		assert.Equal(t, 400, got.StatusCode, "%s: %s", body, got.body)
	}
	got := s.send(t, "POST /v1/ids?n=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\nContent-Type: application/json\r\n\r\n{\"n\":10}")
	assert.Equal(t, 400, got.StatusCode, got.body)
}

// A bug cuts the connection of its request, and is logged.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(_ *issuer.Config, o *Options) {
		o.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") })
	})
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { s.ask(t, "GET", "/metrics") })
	assert.Contains(t, s.log.String(), `level=ERROR msg="a handler panicked: please report this" method="GET /metrics" panic="a bug"`)
	assert.Contains(t, s.log.String(), "code=internal")
}

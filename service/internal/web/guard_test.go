package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

// A page whose name its owner points to this server's address is of the same origin for the
// browser, so only names of this server are answered.
func TestHost(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{options: Options{Hosts: []string{"ids.example.com", "ids.default.svc"}}})
	address := s.listen(t)
	for host, status := range map[string]int{
		address:                        200,
		"127.0.0.1":                    200,
		"localhost":                    200,
		"LOCALHOST:8380":               200,
		"localhost:1":                  200, // forwarded
		"ids.example.com":              200,
		"Ids.Example.Com:443":          200,
		"ids.default.svc:80":           200,
		"evil.example":                 421,
		"evil.example:8380":            421,
		"ids.example.com.evil.example": 421,
		"evil-ids.example.com":         421,
		"localhost.evil.example":       421,
		"127.0.0.1.evil.example":       421,
		"127.0.0.2":                    200,
		"192.0.2.7:8380":               200, // of a load balancer
		"0.0.0.0":                      421,
		"[::1]":                        200,
		"[2001:db8::1]:443":            200,
		"[::]:8380":                    421,
		"[::%lo]":                      421,
		"[::ffff:0.0.0.0]:8380":        421,
		"[::ffff:127.0.0.1]:8380":      200,
		"8380":                         421,
		"localhost:8380:8380":          421,
		"":                             200, // no browser leaves it out; old health checks do
	} {
		for _, path := range []string{"GET /livez", "POST /v1/ids", "GET /", "GET /nowhere"} {
			got := raw(t, address, path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			if path == "GET /nowhere" && status == 200 {
				assert.Equal(t, 404, got.StatusCode, host)
				continue
			}
			assert.Equal(t, status, got.StatusCode, "%s of %s: %s", path, host, got.body)
			if status == 421 {
				assert.NotContains(t, got.body, "evil")
			}
		}
	}
	// A proxy's form of the address names the host as well.
	assert.Equal(t, 421, raw(t, address, "GET http://evil.example/livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").StatusCode)
	assert.Equal(t, 200, raw(t, address, "GET /livez HTTP/1.0\r\n\r\n").StatusCode)
	assert.Equal(t, 404, raw(t, address, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").StatusCode)
}

// A page of another site gets neither an answer nor an ID.
func TestOrigin(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{options: Options{Hosts: []string{"ids.example.com"}}})
	navigation := "Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: document"
	for _, c := range []struct {
		method, target, headers string
		status                  int
	}{
		{"POST", "/v1/ids", "", 200}, // curl
		{"POST", "/v1/ids", "Origin: http://localhost:8380", 200},
		{"POST", "/v1/ids", "Origin: http://localhost:8380|Sec-Fetch-Site: same-origin", 200},
		{"GET", "/v1/status", "Sec-Fetch-Site: same-origin", 200},
		{"GET", "/", "Sec-Fetch-Site: none|" + navigation, 200},       // typed by a person
		{"GET", "/", "Sec-Fetch-Site: cross-site|" + navigation, 200}, // a link

		{"POST", "/v1/ids", "Origin: http://evil.example", 403},
		{"GET", "/v1/ids/1", "Origin: http://evil.example", 403},
		{"GET", "/v1/status", "Origin: http://evil.example", 403},
		{"GET", "/metrics", "Origin: http://evil.example", 403},
		{"GET", "/", "Origin: http://evil.example", 403},
		{"GET", "/nowhere", "Origin: http://evil.example", 403},
		{"OPTIONS", "/v1/ids", "Origin: http://evil.example|Access-Control-Request-Method: POST", 403},
		{"POST", "/v1/ids", "Origin: null", 403}, // a file, or a frame in a sandbox
		{"POST", "/v1/ids", "Origin: ", 403},
		{"POST", "/v1/ids", "Origin: http://localhost:8381", 403},
		{"POST", "/v1/ids", "Origin: http://localhost", 403},
		{"POST", "/v1/ids", "Origin: http://localhost:8380.evil.example", 403},
		{"POST", "/v1/ids", "Origin: http://localhost:8380@evil.example", 403},
		{"POST", "/v1/ids", "Origin: http://ids.example.com", 403},
		{"POST", "/v1/ids", "Origin: http://localhost:8380|Origin: http://evil.example", 403},
		{"POST", "/v1/ids", "Origin: http://localhost:8380|Sec-Fetch-Site: cross-site", 403},
		{"POST", "/v1/ids", "Origin: http://evil.example|Sec-Fetch-Site: same-origin", 403},
		{"POST", "/v1/ids", "Sec-Fetch-Site: cross-site", 403},
		{"POST", "/v1/ids", "Sec-Fetch-Site: same-site", 403},                // another port of this machine
		{"POST", "/v1/ids", "Sec-Fetch-Site: cross-site|" + navigation, 403}, // a form
		{"POST", "/v1/sequences/orders", "Sec-Fetch-Site: cross-site|" + navigation, 403},
		{"GET", "/v1/ids/1", "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: no-cors|Sec-Fetch-Dest: image", 403},
		{"GET", "/app.js", "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: no-cors|Sec-Fetch-Dest: script", 403},
		{"GET", "/", "Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate|Sec-Fetch-Dest: iframe", 403},
	} {
		before := s.observer.Items()
		var headers []string
		if c.headers != "" {
			headers = strings.Split(c.headers, "|")
		}
		got := s.ask(t, c.method, "http://localhost"+c.target, headers...)
		assert.Equal(t, c.status, got.StatusCode, "%s %s, %s: %s", c.method, c.target, c.headers, got.body)
		if c.status == 403 {
			assert.Equal(t, "forbidden", refusal(t, got).Code)
			assert.Equal(t, before, s.observer.Items(), c.headers)
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
	const orders, tickets, wrong = "orders-token-123456", "tickets-token-12345", "wrong-token-9876543"
	s := newServer(t, setup{sample: 1, config: issuer.Config{Clients: []issuer.Credential{
		credential("orders-app", orders, func(c *issuer.Credential) { c.Sequences = []string{"orders"} }),
		credential("tickets-app", tickets, func(c *issuer.Credential) { c.NoIDs, c.Sequences = true, []string{"tick*"} }),
	}}})
	var seen strings.Builder
	ask := func(method, target string, headers ...string) answer {
		got := s.ask(t, method, target, headers...)
		seen.WriteString(got.body)
		got.Header.Write(&seen)
		return got
	}
	example := strings.NewReplacer("{id}", "1", "{name}", "orders", "{$}", "")
	for _, r := range s.list() {
		method, target, _ := strings.Cut(example.Replace(r.pattern), " ")
		for _, bad := range [][]string{
			nil, {"Authorization: "}, {"Authorization: Bearer"}, {"Authorization: Bearer "}, {"Authorization: Bearer " + wrong},
			{"Authorization: " + orders}, {"Authorization: Basic " + orders}, {"Authorization: Bearer " + orders + " " + orders},
			{"Authorization: Bearer " + orders, "Authorization: Bearer " + orders},
		} {
			got := ask(method, target, bad...)
			if r.open {
				assert.Equal(t, http.StatusOK, got.StatusCode, "%s, %q", r.pattern, bad)
				continue
			}
			assert.Equal(t, "unauthenticated", refusal(t, got).Code, "%s, %q", r.pattern, bad)
			assert.Contains(t, got.Header.Get("WWW-Authenticate"), "Bearer", "%s, %q", r.pattern, bad)
		}
		assert.Equal(t, http.StatusOK, ask(method, target, "Authorization: bearer "+orders).StatusCode, "%s", r.pattern)
	}
	assert.Equal(t, http.StatusUnauthorized, ask("POST", "/v1/ids?token="+orders).StatusCode, "a token in an address ends in logs")
	assert.Equal(t, http.StatusOK, ask("POST", "/v1/sequences/tickets", "Authorization: Bearer "+tickets).StatusCode)

	// Both sequences are open by now; each client sees its own.
	for token, name := range map[string]string{orders: "orders", tickets: "tickets"} {
		got := decode[status](t, ask("GET", "/v1/status", "Authorization: Bearer "+token))
		if assert.Len(t, got.Sequences, 1) {
			assert.Equal(t, name, got.Sequences[0].Name)
		}
	}
	for _, token := range []string{orders, tickets, wrong} {
		assert.NotContains(t, seen.String()+s.log.String(), token)
	}
	assert.Contains(t, s.log.String(), `method="POST /v1/sequences/{name}"`)
}

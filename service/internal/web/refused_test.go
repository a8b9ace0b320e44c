package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each bad request gets its status and a text that says what to do, and no ID or number.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	long := strings.Repeat("9", 5000)
	for _, c := range []struct {
		method, target string
		status         int
		text           string
	}{
		{"POST", "/v1/ids?n=abc", 400, `n is "abc": want 1 to 10000 IDs`},
		{"POST", "/v1/ids?n=", 400, `n is "": want`},
		{"POST", "/v1/ids?n", 400, `n is "": want`},
		{"POST", "/v1/ids?n=0", 400, "want 1 to 10000"},
		{"POST", "/v1/ids?n=-1", 400, "want 1 to 10000"},
		{"POST", "/v1/ids?n=%2B1", 400, "want 1 to 10000"},
		{"POST", "/v1/ids?n=1e3", 400, "want 1 to 10000"},
		{"POST", "/v1/ids?n=0x10", 400, "want 1 to 10000"},
		{"POST", "/v1/ids?n=10001", 400, `n is "10001": want 1 to 10000`},
		{"POST", "/v1/ids?n=9223372036854775807", 400, "want 1 to 10000"},
		{"POST", "/v1/ids?n=" + long, 400, `n is "99999999999999999999": want`},
		{"POST", "/v1/ids?n=1&n=2", 400, "n is given 2 times"},
		{"POST", "/v1/ids?n=1&n=1", 400, "n is given 2 times"},
		{"POST", "/v1/ids?count=5", 400, `parameter "count" is not known`},
		{"POST", "/v1/ids?" + long + "=5", 400, `parameter "99999999999999999999" is not known`},
		{"POST", "/v1/ids?n=1;n=2", 400, "cannot be read"},
		{"POST", "/v1/ids?n=%zz", 400, "cannot be read"},
		{"POST", "/v1/ids?n=%3Cscript%3E", 400, "want 1 to 10000"},
		{"GET", "/v1/ids/0?x=1", 400, "no parameters"},
		{"GET", "/v1/ids/abc", 400, "decimal ID"},
		{"GET", "/v1/ids/-5", 400, "decimal ID"},
		{"GET", "/v1/ids/01", 400, "leading zero"},
		{"GET", "/v1/ids/9223372036854775808", 400, "exceeds"},
		{"GET", "/v1/ids/" + long, 400, "decimal ID"},
		{"GET", "/v1/ids/%3Cscript%3E", 400, "decimal ID"},
		{"GET", "/v1/ids/", 404, "no such path"},
		{"POST", "/v1/sequences/orders?n=0", 400, "want 1 to 1000000 numbers"},
		{"POST", "/v1/sequences/orders?n=1000001", 400, "want 1 to 1000000 numbers"},
		{"POST", "/v1/sequences/Orders", 400, "lower-case"},
		{"POST", "/v1/sequences/%3Cb%3E", 400, "lower-case"},
		{"POST", "/v1/sequences/..", 404, "no such path"},
		{"POST", "/v1/sequences/" + long, 400, "5000 bytes, want 1 to 64"},
		{"GET", "/v1/sequences/orders?n=1", 400, "no parameters"},
		{"GET", "/v1/layout?x", 400, "no parameters"},
		{"GET", "/v1/status?token=x", 400, "no parameters"},
		{"POST", "/v1/sequences/absent", 404, "tickflake sequence create absent"},
		{"GET", "/v1/sequences/absent", 404, "tickflake sequence create absent"},
		{"POST", "/v1/sequences/tickets?n=4", 409, "3 numbers left"},
		{"GET", "/v2/ids", 404, "no such path"},
		{"GET", "/v1/ids/1/2", 404, "no such path"},
		{"GET", "//", 404, "no such path"},
		{"POST", "/v1//ids", 404, "no such path"},
		{"POST", "/v1/ids/../ids", 404, "no such path"},
		{"GET", "/v1/sequences/a%2Fb", 400, "lower-case"},
		{"GET", "/favicon.ico", 404, "no such path"},
		{"GET", "/static/app.js", 404, "no such path"},
		{"GET", "/v1/ids", 405, `"GET" is not one of this path: want POST`},
		{"HEAD", "/v1/ids", 405, ""},
		{"PUT", "/v1/ids", 405, "want POST"},
		{"POST", "/v1/ids/1", 405, "want GET, HEAD"},
		{"DELETE", "/v1/sequences/orders", 405, "want GET, HEAD, POST"},
		{"OPTIONS", "/v1/ids", 405, "want POST"},
		{"BREW" + strings.Repeat("W", 100), "/v1/ids", 405, `"BREWWWWWWWWWWWWWWWWW" is not one`},
		{"POST", "/", 405, "want GET, HEAD"},
		{"POST", "/livez", 405, "want GET, HEAD"},
	} {
		name := c.method + " " + c.target
		name = name[:min(len(name), 60)]
		got := s.ask(t, c.method, "http://localhost"+c.target)
		p := refusal(t, got)
		assert.Equal(t, c.status, p.Status, name)
		if c.method != "HEAD" {
			assert.Contains(t, p.Detail, c.text, name)
		}
		assert.NotContains(t, got.body, "<", name)
		assert.Equal(t, c.status == http.StatusMethodNotAllowed, got.Header.Get("Allow") != "", name)
		assert.Empty(t, got.Header.Get("Retry-After"), name)
	}
	assert.Zero(t, s.observer.Items())
	assert.Equal(t, "GET, HEAD, POST", s.ask(t, "PUT", "/v1/sequences/orders").Header.Get("Allow"))
}

// A request with a body means something that is not served: to ignore it would give one ID to
// "curl -d n=10".
func TestBody(t *testing.T) {
	t.Parallel()
	address := newServer(t, setup{}).listen(t)
	for _, c := range []struct {
		name, header, body string
		status             int
	}{
		{"none", "", "", 200},
		{"empty", "Content-Length: 0", "", 200},
		{"empty chunks", "Transfer-Encoding: chunked", "0\r\n\r\n", 200},
		{"form", "Content-Length: 4", "n=10", 400},
		{"chunks", "Transfer-Encoding: chunked", "1\r\nn\r\n0\r\n\r\n", 400},
		{"no chunks", "Transfer-Encoding: chunked", "zz\r\n", 400},
		{"longer than it can be", "Content-Length: 9223372036854775807", "n=10", 400},
	} {
		for _, path := range []string{"/v1/ids", "/v1/sequences/orders"} {
			head := "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
			if c.header != "" {
				head += c.header + "\r\n"
			}
			got := raw(t, address, head+"\r\n"+c.body)
			assert.Equal(t, c.status, got.StatusCode, "%s: %s", c.name, got.body)
			if c.status != 200 {
				assert.Contains(t, refusal(t, got).Detail, "has a body", c.name)
			}
		}
	}
}

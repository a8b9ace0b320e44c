package web

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tickflake/tickflake/service/internal/issuer"
)

// Every request that net/http can read gets an answer of the document: nothing panics, no
// text of the request becomes a header or HTML, and no token is shown.
func FuzzHandlers(f *testing.F) {
	open := newServer(f, func(c *issuer.Config, _ *Options) { c.MaxBatch = 50 })
	closed := newServer(f, func(c *issuer.Config, o *Options) { c.MaxBatch = 50; clients(c, o) })
	const token = ordersToken

	for _, target := range []string{
		"/", "/v1/ids", "/v1/ids?n=50", "/v1/ids?n=51", "/v1/ids?n=-1&n=2", "/v1/ids?%zz", "/v1/ids/1541815603606036480", "/v1/ids/9223372036854775807",
		"/v1/ids/%3Cscript%3E", "/v1/sequences/orders?n=3", "/v1/sequences/tickets", "/v1/sequences/%00", "/v1/sequences/..", "//", "/v1/../v1/ids", "*",
		"http://evil.example/v1/ids", "/livez", "/readyz", "/metrics", "/v1/status", "/v1/layout", "/v1/openapi.yaml", "/", "/nowhere",
	} {
		for _, method := range []string{"GET", "POST", "HEAD", "OPTIONS"} {
			f.Add(method, target, "Host: localhost", "")
		}
	}
	for _, headers := range []string{
		"Host: evil.example", "Host: [::1", "Host: localhost\r\nOrigin: http://evil.example", "Host: localhost\r\nOrigin: %", "Host: localhost\r\nSec-Fetch-Site: cross-site",
		"Host: localhost\r\nAuthorization: Bearer " + token, "Host: localhost\r\nAuthorization: Bearer \x80", "Host: localhost\r\nAccept: text/plain",
		"Host: localhost\r\nAccept: text/plain;q=1e400, a/b;;;,", "Host: localhost\r\nContent-Length: 3", "Host: localhost\r\nTransfer-Encoding: chunked",
	} {
		f.Add("POST", "/v1/ids?n=2", headers, "n=3")
	}
	f.Fuzz(func(t *testing.T, method, target, headers, body string) {
		for _, s := range []*service{open, closed} {
			r, err := http.ReadRequest(bufio.NewReader(io.LimitReader(strings.NewReader(method+" "+target+" HTTP/1.1\r\n"+headers+"\r\n\r\n"+body), 64<<10)))
			if err != nil {
				return // net/http answers this
			}
			before := s.issuer.Items()
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			got := w.Result()
			if err := conforms(r.Method, r.URL.EscapedPath(), got, w.Body.Bytes()); err != nil {
				t.Fatalf("%s %q: status %d: %v\n%s", r.Method, r.URL, got.StatusCode, err, w.Body)
			}
			if got.StatusCode != http.StatusOK && s.issuer.Items() != before {
				t.Fatalf("%s %q: status %d, but IDs were counted", r.Method, r.URL, got.StatusCode)
			}
			if s == closed && got.StatusCode == http.StatusOK && s.issuer.Items() != before && !strings.Contains(headers, token) {
				t.Fatalf("%s %q: IDs without a token", r.Method, r.URL)
			}
			for name, values := range got.Header {
				if strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") {
					t.Fatalf("header %q: %q", name, values)
				}
			}
			page := strings.HasPrefix(got.Header.Get("Content-Type"), "text/")
			if text := w.Body.String(); !page && got.Header.Get("Content-Type") != "application/yaml" && strings.ContainsAny(text, "<>") || strings.Contains(text, token) && !strings.Contains(target, token) {
				t.Fatalf("%s %q: the answer repeats the request: %s", r.Method, r.URL, text)
			}
		}
	})
}

package web

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
)

// IDs of all requests, in JSON and as text, ascend, and are as many as were asked for.
func TestIDs(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *issuer.Config, _ *Options) { // runs whose stride is above 1
		layout, err := snowflake.ParseLayout("time=41,sequence=12,node=10,epoch=2025-01-01")
		require.NoError(t, err)
		c.Generator, err = generator.New(generator.WithNode(1), generator.WithLayout(layout))
		require.NoError(t, err)
	})
	last := snowflake.ID(0)
	text := strings.NewReplacer(`{"ids":["`, "", `","`, " ", `"]}`, "")
	for _, n := range []int{1, 2, 1000, 10_000} {
		for accepts, kind := range map[string]string{
			"application/json, text/plain, */*": "application/json", // as axios does
			"text/plain;q=0.9, */*":             "text/plain; charset=utf-8",
		} {
			got := s.ask(t, "POST", fmt.Sprint("/v1/ids?n=", n), "Accept: "+accepts)
			assert.Equal(t, kind, got.Header.Get("Content-Type"))
			ids := strings.Fields(text.Replace(got.body))
			assert.Len(t, ids, n)
			for _, id := range ids {
				id, err := snowflake.Parse(id)
				require.NoError(t, err)
				require.Greater(t, id, last)
				last = id
			}
		}
	}
	assert.EqualValues(t, 2*(1+2+1000+10_000), s.issuer.Items())
	seen := last + 1<<22 // half a tick ahead at least
	assert.Greater(t, decode[struct{ IDs []snowflake.ID }](t, s.ask(t, "POST", fmt.Sprintf("/v1/ids?after=%d&n=2", seen))).IDs[0], seen)
}

// What each route answers: N stands for a number, ID for the ID of the first row, and T for its time.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := strings.TrimSpace(s.ask(t, "POST", "/v1/ids", "Accept: text/plain").body)
	pattern := strings.NewReplacer("ID", id, `"T"`, `"2[-0-9T:.]*Z"`, "N", `[0-9.e-]+`)
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/v1/ids/" + id, `{"id":"ID","time":"T","node":1,"parts":{},"sequence":N}`},
		{"GET", "/v1/layout", `{"layout":".*","epoch":"2025-01-01T00:00:00Z","tick_seconds":0.001,"time_bits":41,"node_bits":10,"sequence_bits":12,"node_last":false,"node":1,"strategy":"wait up to 1s","max_batch":10000,"max_numbers":1000000}`},
		{"GET", "/v1/status", `{"ready":true,"uptime_seconds":N,"items":1,"store":"memory","node":1,.*"sequences":\[\],"more":0}`},
		{"POST", "/v1/sequences/orders", `{"name":"orders","mode":"segmented","first":"1","last":"1","count":1,"stride":1}`},
		{"POST", "/v1/sequences/orders?n=10", `{"name":"orders","mode":"segmented","first":"2","last":"11","count":10,"stride":1}`},
		{"GET", "/v1/sequences/tickets", `{"name":"tickets","mode":"ordered","start":"1","stride":1,"offset":0,"max":"3","next":"1","last":"0","left":"3"}`},
		{"POST", "/v1/sequences/tickets?n=3", `{"name":"tickets","mode":"ordered","first":"1","last":"3","count":3,"stride":1}`},
		{"GET", "/v1/sequences/tickets", `{"name":"tickets","mode":"ordered","start":"1","stride":1,"offset":0,"max":"3","next":null,"last":"3","left":"0"}`},
		{"GET", "/v1/sequences/bills", `{"name":"bills",.*"next":null,"last":null,"left":null,"period":"yearly"}`},
		{"GET", "/v1/status", `{.*"items":15,.*"sequences":\[{"name":"orders","mode":"segmented","issued":11,.*"last":"N","left":"N"},{"name":"tickets",.*}\],"more":0}`},
		{"GET", "/readyz", `ok\nclock_error:\S+`},
	} {
		got := s.ask(t, c.method, c.target)
		assert.Regexp(t, "^"+pattern.Replace(c.want)+"\n$", got.body, c.target)
		if c.method == "GET" && !strings.HasSuffix(c.target, "status") {
			assert.Equal(t, got.Header.Get("Content-Length"), s.ask(t, "HEAD", c.target).Header.Get("Content-Length"))
		}
	}
	// Readiness follows the grant and the drain; being alive does not.
	s.issuer.Config().Spare = math.MaxInt64
	p := refusal(t, s.ask(t, "GET", "/readyz"))
	assert.Equal(t, http.StatusServiceUnavailable, p.Status)
	assert.True(t, strings.HasPrefix(p.Detail, "the grant has "), p.Detail)
	s.issuer.Drain()
	assert.Contains(t, s.ask(t, "GET", "/v1/status").body, `{"ready":false,"reason":"the server is about to stop`)
	s.issuer.Config().Store = nil
	assert.Equal(t, "ok\n", s.ask(t, "GET", "/livez").body)
}

// The document is valid, and has the routes of the server and no others. It says of each
// whether it needs a token.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc, err := document()
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	var documented, served []string
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			line := method + " " + path
			if operation.Security != nil && len(*operation.Security) == 0 {
				line += " open"
			}
			documented = append(documented, line)
		}
	}
	for _, r := range newServer(t, nil).list() {
		line := strings.Replace(r.pattern, "{$}", "", 1)
		if r.need == nothing {
			line += " open"
		}
		served = append(served, line)
	}
	slices.Sort(documented)
	slices.Sort(served)
	assert.Equal(t, served, documented)
}

package web

import (
	"bytes"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
)

// IDs of all requests, in JSON and as text, ascend, and are as many as were asked for.
func TestIDs(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	last := int64(0)
	next := func(text string) {
		id, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		require.Greater(t, id, last)
		last = id
	}
	for _, c := range []struct {
		query string
		want  int
	}{{"", 1}, {"?n=1", 1}, {"?n=2", 2}, {"?n=1000", 1000}, {"?n=10000", 10_000}} {
		got := s.ask(t, "POST", "/v1/ids"+c.query, "Accept: application/json, text/plain, */*") // as axios does
		ids := decode[struct{ IDs []string }](t, got).IDs
		assert.Len(t, ids, c.want)
		for _, id := range ids {
			next(id)
		}

		assert.Equal(t, "application/json", got.Header.Get("Content-Type"))
		got = s.ask(t, "POST", "/v1/ids"+c.query, "Accept: text/plain;q=0.9, */*")
		assert.Equal(t, "text/plain; charset=utf-8", got.Header.Get("Content-Type"))
		lines := strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
		assert.Len(t, lines, c.want)
		for _, id := range lines {
			next(id)
		}
	}
	assert.EqualValues(t, 2*(1+1+2+1000+10_000), s.issuer.Items())
}

// Runs of any IDs are written as strconv writes each.
func TestForms(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	edges := []int64{0, 1, 9, 10, 99, 9_998, 9_999, 10_000, 99_990, 99_999_999, 999_999_999_999_999_999, math.MaxInt64 - 1<<20}
	for range 300 {
		var b batch
		var texts []string
		for range 1 + random.IntN(3) {
			first := edges[random.IntN(len(edges))] - random.Int64N(20)
			run := snowflake.Run{First: snowflake.ID(max(first, 0)), Count: 1 + random.Int64N(3000), Stride: 1}
			if random.IntN(2) == 0 {
				run.Stride = 1 << random.IntN(6)
			}
			b.runs = append(b.runs, issuer.Run{Run: run})
			for i := range run.Count {
				texts = append(texts, strconv.FormatInt(int64(run.At(i)), 10))
			}
		}
		b.chunk = make([]byte, 0, chunkSize)
		for _, c := range []struct {
			form form
			want string
		}{
			{formJSON, `{"ids":["` + strings.Join(texts, `","`) + "\"]}\n"},
			{formText, strings.Join(texts, "\n") + "\n"},
		} {
			var out bytes.Buffer
			b.form = &c.form
			b.write(&out)
			require.Equal(t, c.want, out.String())
		}
	}
}

// An ID is decoded as "tickflake decode --format json" prints it.
func TestDecode(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	id := strings.TrimSpace(s.ask(t, "POST", "/v1/ids", "Accept: text/plain").body)
	got := s.ask(t, "GET", "/v1/ids/"+id)
	parsed, err := snowflake.Parse(id)
	require.NoError(t, err)
	d, err := s.issuer.Layout().Decode(parsed)
	require.NoError(t, err)
	want, err := d.MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, string(want)+"\n", got.body)
	assert.EqualValues(t, 1, decode[struct{ Node int64 }](t, got).Node)

	head := s.ask(t, "HEAD", "/v1/ids/"+id)
	assert.Equal(t, http.StatusOK, head.StatusCode)
	assert.Equal(t, got.Header.Get("Content-Length"), head.Header.Get("Content-Length"))
}

func TestSequences(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	assert.Equal(t, `{"name":"orders","mode":"segmented","first":"1","last":"1","count":1,"stride":1}`+"\n", s.ask(t, "POST", "/v1/sequences/orders").body)
	assert.Equal(t, `{"name":"orders","mode":"segmented","first":"2","last":"11","count":10,"stride":1}`+"\n", s.ask(t, "POST", "/v1/sequences/orders?n=10").body)
	assert.Equal(t, `{"name":"tickets","mode":"ordered","start":"1","stride":1,"offset":0,"max":"3","next":"1","last":"0","left":"3"}`+"\n", s.ask(t, "GET", "/v1/sequences/tickets").body)
	assert.Equal(t, `{"name":"tickets","mode":"ordered","first":"1","last":"3","count":3,"stride":1}`+"\n", s.ask(t, "POST", "/v1/sequences/tickets?n=3").body)
	assert.Equal(t, `{"name":"tickets","mode":"ordered","start":"1","stride":1,"offset":0,"max":"3","next":null,"last":"3","left":"0"}`+"\n", s.ask(t, "GET", "/v1/sequences/tickets").body)
	assert.EqualValues(t, 1+10+3, s.issuer.Items())
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	before := decode[status](t, s.ask(t, "GET", "/v1/status"))
	assert.True(t, before.Ready)
	assert.Empty(t, before.Sequences)
	s.ask(t, "POST", "/v1/ids?n=100")
	s.ask(t, "POST", "/v1/sequences/orders?n=7")
	after := decode[status](t, s.ask(t, "GET", "/v1/status"))
	assert.EqualValues(t, 107, after.Items-before.Items)
	assert.Greater(t, after.Uptime, before.Uptime)
	assert.EqualValues(t, 1, after.Node)
	if assert.Len(t, after.Sequences, 1) {
		assert.Equal(t, "orders", after.Sequences[0].Name)
		assert.EqualValues(t, 7, after.Sequences[0].Issued)
		assert.GreaterOrEqual(t, after.Sequences[0].Last, int64(7))
	}

	s.issuer.Drain()
	draining := decode[status](t, s.ask(t, "GET", "/v1/status"))
	assert.False(t, draining.Ready)
	assert.Contains(t, draining.Reason, "about to stop")
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	got := decode[layout](t, s.ask(t, "GET", "/v1/layout"))
	assert.Equal(t, layout{
		Layout: s.issuer.Layout().String(), Epoch: "2025-01-01T00:00:00Z", Tick: 0.001, TimeBits: 41, NodeBits: 10, SequenceBits: 12,
		Node: 1, Strategy: "wait up to 1s", MaxBatch: 10_000, MaxNumbers: 1_000_000,
	}, got)
}

// Readiness follows the grant; being alive does not, and does not need a generator.
func TestProbes(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	assert.Equal(t, http.StatusOK, s.ask(t, "GET", "/readyz").StatusCode)
	s.issuer.Config().Spare = math.MaxInt64
	p := refusal(t, s.ask(t, "GET", "/readyz"))
	assert.Equal(t, http.StatusServiceUnavailable, p.Status)
	assert.True(t, strings.HasPrefix(p.Detail, "the grant has "), p.Detail)

	s.issuer.Config().Generator, s.issuer.Config().Store = nil, nil
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
		if r.open {
			line += " open"
		}
		served = append(served, line)
	}
	slices.Sort(documented)
	slices.Sort(served)
	assert.Equal(t, served, documented)
}

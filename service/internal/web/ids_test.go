package web

import (
	"bytes"
	"math"
	"math/rand/v2"
	"net/http"
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
	s := newServer(t, setup{})
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
		got := s.ask(t, "POST", "/v1/ids"+c.query)
		assert.Equal(t, strconv.Itoa(len(got.body)), got.Header.Get("Content-Length"))
		ids := decode[struct{ IDs []string }](t, got).IDs
		assert.Len(t, ids, c.want)
		for _, id := range ids {
			next(id)
		}

		got = s.ask(t, "POST", "/v1/ids"+c.query, "Accept: text/plain")
		assert.Equal(t, strconv.Itoa(len(got.body)), got.Header.Get("Content-Length"))
		lines := strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
		assert.Len(t, lines, c.want)
		for _, id := range lines {
			next(id)
		}
	}
	assert.EqualValues(t, 2*(1+1+2+1000+10_000), s.observer.Items())
}

// Runs of any IDs are written as strconv writes each, and the size is known beforehand.
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
			c.form.write(&out, &b)
			require.Equal(t, c.want, out.String())
			require.EqualValues(t, out.Len(), c.form.size(b.runs), "%+v", b.runs)
		}
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		accept    string // headers, separated by semicolons and a bar
		plain, ok bool
	}{
		{"", false, true},
		{"*/*", false, true}, // curl
		{"application/json, text/plain, */*", false, true}, // axios
		{"text/plain", true, true},
		{"TEXT/Plain; charset=utf-8", true, true},
		{"text/*", true, true},
		{"application/*", false, true},
		{"text/plain;q=0.5, application/json", false, true},
		{"text/plain, application/json;q=0.9", true, true},
		{"application/json;q=0, */*", true, true},
		{"text/plain;q=0, */*;q=0.1", false, true},
		{"application/json;q=0|text/plain;q=0.1", true, true},
		{"text/html", false, false},
		{"text/plain;q=0", false, false},
		{"text/plain;q=NaN", false, false},
		{"text/plain;q=2", false, false},
		{"nonsense//;;", false, false},
		{strings.Repeat("a/b,", maxRanges) + "text/plain", false, false},
	} {
		var headers []string
		if c.accept != "" {
			headers = strings.Split(c.accept, "|")
		}
		plain, ok := plainText(headers)
		assert.Equal(t, c.plain, plain, c.accept)
		assert.Equal(t, c.ok, ok, c.accept)
	}
	s := newServer(t, setup{})
	p := refusal(t, s.ask(t, "POST", "/v1/ids", "Accept: text/html"))
	assert.Equal(t, http.StatusNotAcceptable, p.Status)
	assert.Zero(t, s.observer.Items())
}

// An ID is decoded as "tickflake decode --format json" prints it.
func TestDecode(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
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

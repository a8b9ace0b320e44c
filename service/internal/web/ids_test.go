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
		ids := decode[struct{ IDs []string }](t, got).IDs
		assert.Len(t, ids, c.want)
		for _, id := range ids {
			next(id)
		}

		got = s.ask(t, "POST", "/v1/ids"+c.query, "Accept: text/plain")
		lines := strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
		assert.Len(t, lines, c.want)
		for _, id := range lines {
			next(id)
		}
	}
	assert.EqualValues(t, 2*(1+1+2+1000+10_000), s.observer.Items())
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

// Only a client that names text first gets text: axios, for one, names it second.
func TestAccept(t *testing.T) {
	t.Parallel()
	s := newServer(t, setup{})
	for accept, want := range map[string]string{
		"*/*": "application/json", "application/json, text/plain, */*": "application/json", "text/html": "application/json",
		"text/plain": "text/plain; charset=utf-8", "text/plain;q=0.9, */*": "text/plain; charset=utf-8",
	} {
		assert.Equal(t, want, s.ask(t, "POST", "/v1/ids", "Accept: "+accept).Header.Get("Content-Type"), accept)
	}
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

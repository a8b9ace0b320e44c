package web

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
)

const (
	// chunkSize is how many bytes of an answer are written at once. A request holds one chunk
	// and its runs, however many IDs it asked for, so clients that do not read hold little.
	chunkSize = 32 << 10
	longest   = 64 // bytes of an ID and of the texts beside it
)

// batch is the answer to a request for IDs.
type batch struct {
	*form
	n    int64
	runs []snowflake.Run
}

// form is how IDs are written.
type form struct {
	kind                []string
	begin, between, end string
}

var (
	formJSON = form{[]string{"application/json"}, `{"ids":["`, `","`, "\"]}\n"}
	formText = form{[]string{"text/plain; charset=utf-8"}, "", "\n", "\n"}
)

// takeIDs answers POST /v1/ids.
func (s *Server) takeIDs(ctx context.Context, r *http.Request, c *issuer.Client) (any, int64, error) {
	n, after, err := count(r, "after")
	var seen snowflake.ID
	if err == nil && after != "" {
		seen, err = issuer.ParseID(after)
	}
	if err != nil {
		return nil, 0, err
	}
	b := &batch{form: &formJSON, n: n}
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	if kind, _, err := mime.ParseMediaType(first); err == nil && kind == "text/plain" {
		b.form = &formText
	}
	if b.runs, err = s.issuer.Runs(ctx, c, n, seen, nil); err != nil {
		return nil, 0, err
	}
	return b, n, nil
}

// ServeHTTP writes the IDs in chunks.
func (b *batch) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = b.kind
	out := append(make([]byte, 0, min(chunkSize, (b.n+1)*longest)), b.begin...)
	between := ""
	for _, run := range b.runs {
		id := int64(run.First)
		for range run.Count {
			if cap(out)-len(out) < longest {
				if _, err := w.Write(out); err != nil {
					return // the client has gone away
				}
				out = out[:0]
			}
			out = strconv.AppendInt(append(out, between...), id, 10)
			between = b.between
			id += run.Stride
		}
	}
	out = append(out, b.end...)
	w.Write(out) // an error: the client has gone away
}

// decode answers GET /v1/ids/{id}.
func (s *Server) decode(_ context.Context, r *http.Request, _ *issuer.Client) (any, int64, error) {
	id, err := issuer.ParseID(r.PathValue("id"))
	if err != nil {
		return nil, 0, err
	}
	d, err := s.issuer.Decode(id)
	return d, 0, err
}

// parameters returns those of the query or, in place of it, of a body: an object in JSON with the same
// names, whose values are numbers or texts.
func parameters(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badInput("the query of the address cannot be read: want n=1, or more")
	}
	if r.ContentLength == 0 {
		return query, nil
	}
	// The server's time to read bounds this read.
	body, err := io.ReadAll(io.LimitReader(r.Body, limit.Body+1))
	if err != nil || len(body) > limit.Body {
		return nil, errBody
	}
	if peer, ok := r.Context().Value(peerKey{}).(issuer.Peer); ok {
		peer.Asked()
	}
	if len(body) == 0 { // its length was unknown
		return query, nil
	}
	var object map[string]json.RawMessage
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/json" || len(query) > 0 || json.Unmarshal(body, &object) != nil || object == nil {
		return nil, errBody
	}
	for name, value := range object {
		var text string
		var number json.Number // which takes no text that is none
		if json.Unmarshal(value, &text) == nil && value[0] == '"' {
			query.Set(name, text)
		} else if json.Unmarshal(value, &number) == nil && value[0] != 'n' {
			query.Set(name, number.String())
		} else {
			return nil, errBody
		}
	}
	return query, nil
}

// count returns the n of a request, 1 by default, whatever its size, and the value of the other parameter
// that it may have, if any. It refuses a request that has others, for it means something that is not served.
func count(r *http.Request, other string) (n int64, value string, err error) {
	query, err := parameters(r)
	if err != nil {
		return 0, "", err
	}
	for key, values := range query {
		switch {
		case key != "n" && (key != other || other == ""):
			return 0, "", badInput("parameter %.20q is not known: want n%s, or none", key, strings.TrimSuffix(" or "+other, " or "))
		case len(values) > 1:
			return 0, "", badInput("%s is given %d times: want one value", key, len(values))
		case values[0] == "":
			return 0, "", badInput("%s has no value: want %s=NUMBER", key, key)
		}
	}
	n, err = issuer.ParseCount(cmp.Or(query.Get("n"), "1"))
	return n, query.Get(other), err
}

package web

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tickflake/tickflake/service/internal/issuer"
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
	n    int64
	runs []snowflake.Run
}

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
	runs, err := s.issuer.Runs(ctx, c, n, seen, nil)
	if err != nil {
		return nil, 0, err
	}
	return &batch{n, runs}, n, nil
}

// ServeHTTP writes the IDs in chunks.
func (b *batch) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	out := append(make([]byte, 0, min(chunkSize, (b.n+1)*longest)), `{"ids":["`...)
	between := ""
	for _, run := range b.runs {
		for k := range run.Count {
			if cap(out)-len(out) < longest {
				if _, err := w.Write(out); err != nil {
					return // the client has gone away
				}
				out = out[:0]
			}
			out = strconv.AppendInt(append(out, between...), int64(run.At(k)), 10)
			between = `","`
		}
	}
	out = append(out, "\"]}\n"...)
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

// count returns the n of a request, 1 by default, whatever its size, and the value of the other parameter
// that it may have, if any. It refuses a request that has others, or a body, for it means something that is not served.
func count(r *http.Request, other string) (n int64, value string, err error) {
	if r.ContentLength != 0 {
		// Where the length is unknown, the server's time to read bounds this read.
		if n, err := r.Body.Read(make([]byte, 1)); r.ContentLength > 0 || n > 0 || err != io.EOF {
			return 0, "", errBody
		}
		r.Context().Value(peerKey{}).(issuer.Peer).Asked()
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return 0, "", badInput("the query of the address cannot be read: want n=1, or more")
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

// takeNumbers answers POST /v1/sequences/{name}.
func (s *Server) takeNumbers(ctx context.Context, r *http.Request, c *issuer.Client) (any, int64, error) {
	n, _, err := count(r, "")
	if err != nil {
		return nil, 0, err
	}
	got, err := s.issuer.Number(ctx, c, r.PathValue("name"), n)
	return got, n, err
}

var fine = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
})

// live answers GET /livez.
func (s *Server) live(context.Context, *http.Request, *issuer.Client) (any, int64, error) {
	return fine, 0, s.issuer.Live()
}

// ready answers GET /readyz.
func (s *Server) ready(context.Context, *http.Request, *issuer.Client) (any, int64, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\nclock_error:"+s.issuer.ClockError()+"\n"))
	}), 0, s.issuer.Ready()
}

package web

import (
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/observe"
	"github.com/tickflake/tickflake/snowflake"
)

// chunkSize is how many bytes of an answer are written at once. A request holds one chunk
// and its runs, however many IDs it asked for, so clients that do not read hold little.
const chunkSize = 32 << 10

// batch is the memory of a request for IDs.
type batch struct {
	runs  []issuer.Run
	chunk []byte
}

// maxRuns is how many runs a batch keeps for the next request.
const maxRuns = 1024

// takeIDs answers POST /v1/ids.
func (s *Server) takeIDs(w http.ResponseWriter, r *http.Request, c *issuer.Client) (int64, error) {
	n, err := s.count(r, "IDs", s.issuer.Config().MaxBatch)
	if err != nil {
		return 0, err
	}
	form := &formJSON
	switch plain, ok := plainText(r.Header["Accept"]); {
	case !ok:
		return 0, errAccept
	case plain:
		form = &formText
	}
	ctx, cancel := s.issuer.Within(r.Context())
	defer cancel()
	b := s.batches.Get().(*batch)
	defer func() {
		if cap(b.runs) <= maxRuns {
			s.batches.Put(b)
		}
	}()
	if b.runs, err = s.issuer.Runs(ctx, c, n, b.runs[:0]); err != nil {
		return 0, err
	}
	h := w.Header()
	h["Content-Type"] = form.kind
	h["Content-Length"] = []string{strconv.FormatInt(form.size(b.runs), 10)}
	form.write(w, b)
	return n, nil
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

// size returns how many bytes the IDs of the runs, of which there is one at least, take.
func (f *form) size(runs []issuer.Run) int64 {
	size := int64(len(f.begin) + len(f.end) - len(f.between))
	for _, run := range runs {
		size += run.Count*int64(len(f.between)) + digits(run.Run)
	}
	return size
}

// digits returns how many digits the IDs of a run have together.
func digits(run snowflake.Run) int64 {
	total := run.Count
	for power, below := int64(10), 1; below < 19 && power <= int64(run.Last()); power, below = power*10, below+1 {
		more := run.Count // IDs from power on: they have one digit more
		if first := int64(run.First); first < power {
			more -= (power - first + run.Stride - 1) / run.Stride
		}
		total += more
	}
	return total
}

// write writes the IDs in chunks.
func (f *form) write(w io.Writer, b *batch) {
	const longest = 64 // bytes of an ID and of the texts beside it
	out := append(b.chunk[:0], f.begin...)
	var d decimal
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
			out = d.append(append(out, between...), id)
			between = f.between
			id += run.Stride
		}
	}
	out = append(out, f.end...)
	w.Write(out) // an error: the client has gone away
}

// decimal writes numbers that lie near each other: it keeps the digits that the last one had
// above its lowest four. This halves the time of an answer.
type decimal struct {
	high   int64 // the number of these digits; 0: none are kept
	digits []byte
	memory [20]byte
}

// append appends a number that is not negative.
func (d *decimal) append(out []byte, n int64) []byte {
	high := n / 1e4
	if high == 0 {
		return strconv.AppendInt(out, n, 10)
	}
	if high != d.high {
		d.high, d.digits = high, strconv.AppendInt(d.memory[:0], high, 10)
	}
	low := uint16(n - high*1e4)
	out = append(out, d.digits...)
	return append(out, '0'+byte(low/1000), '0'+byte(low/100%10), '0'+byte(low/10%10), '0'+byte(low%10))
}

// decode answers GET /v1/ids/{id}.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, _ *issuer.Client) (int64, error) {
	if err := noQuery(r); err != nil {
		return 0, err
	}
	id, err := snowflake.Parse(r.PathValue("id"))
	if err != nil {
		return 0, badInput("%w", err)
	}
	d, err := s.issuer.Decode(id)
	if err != nil {
		return 0, err
	}
	writeJSON(w, http.StatusOK, "application/json", d)
	return 0, nil
}

// count returns the n of a request, 1 by default, and refuses a request that has a body or
// other parameters, for it means something that is not served.
func (s *Server) count(r *http.Request, what string, most int64) (int64, error) {
	if r.ContentLength != 0 {
		// A body of unknown length may be empty. The server's time to read bounds this read.
		if r.ContentLength > 0 {
			return 0, errBody
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 1)); err != io.EOF {
			return 0, errBody
		}
		if peer, ok := r.Context().Value(peerKey{}).(observe.Peer); ok {
			peer.Asked()
		}
	}
	if r.URL.RawQuery == "" {
		return 1, nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return 0, badInput("the query of the address cannot be read: want n=1 to n=%d", most)
	}
	for key := range query {
		if key != "n" {
			return 0, badInput("parameter %.20q is not known: want n, or none", key)
		}
	}
	values := query["n"]
	if len(values) != 1 {
		return 0, badInput("n is given %d times: want one", len(values))
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n < 1 || n > most || values[0][0] == '+' {
		return 0, badInput("n is %.20q: want 1 to %d %s in one request", values[0], most, what)
	}
	return n, nil
}

// noQuery refuses a request with parameters.
func noQuery(r *http.Request) error {
	if r.URL.RawQuery != "" {
		return badInput("the address has a query: this path takes no parameters")
	}
	return nil
}

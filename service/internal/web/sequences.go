package web

import (
	"net/http"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// numbers is the answer to POST /v1/sequences/{name}: first, first + stride, …, last. Numbers
// of 64 bits are texts, because a number of JavaScript keeps only 53 bits.
type numbers struct {
	Name   string        `json:"name"`
	Mode   sequence.Mode `json:"mode"`
	First  int64         `json:"first,string"`
	Last   int64         `json:"last,string"`
	Count  int64         `json:"count"`
	Stride int64         `json:"stride"`
}

// takeNumbers answers POST /v1/sequences/{name}.
func (s *Server) takeNumbers(r *http.Request, c *issuer.Client) (any, int64, error) {
	n, _, err := count(r, "")
	if err != nil {
		return nil, 0, err
	}
	ctx := s.issuer.Timeout(r.Context())
	defer ctx.Cancel()
	name := r.PathValue("name")
	got, err := s.issuer.Number(ctx, c, name, n)
	if err != nil {
		return nil, 0, err
	}
	return numbers{name, got.Mode, got.First, got.Last, got.Count, got.Stride}, n, nil
}

// state is the answer to GET /v1/sequences/{name}.
type state struct {
	Name   string        `json:"name"`
	Mode   sequence.Mode `json:"mode"`
	Start  int64         `json:"start,string"`
	Stride int64         `json:"stride"`
	Offset int64         `json:"offset"`
	Max    int64         `json:"max,string"`
	Next   *int64        `json:"next,string"` // null if none is left, or by period
	Last   *int64        `json:"last,string"` // null by period, as Left
	Left   *int64        `json:"left,string"`

	Period sequence.Period `json:"period,omitempty"`
}

// inspect answers GET /v1/sequences/{name}.
func (s *Server) inspect(r *http.Request, c *issuer.Client) (any, int64, error) {
	ctx := s.issuer.Timeout(r.Context())
	defer ctx.Cancel()
	info, err := s.issuer.Inspect(ctx, c, r.PathValue("name"))
	if err != nil {
		return nil, 0, err
	}
	d := info.Definition
	answer := state{
		Name: info.Name, Mode: d.Mode, Start: d.Start, Stride: d.Stride.By(), Offset: d.Stride.Offset(),
		Max: d.Max, Period: d.Period,
	}
	if d.Period == "" {
		answer.Last, answer.Left = &info.Last, &info.Left
	}
	if info.Left > 0 {
		answer.Next = &info.Next
	}
	return answer, 0, nil
}

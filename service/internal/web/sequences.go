package web

import (
	"context"
	"net/http"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
)

// takeNumbers answers POST /v1/sequences/{name}.
func (s *Server) takeNumbers(ctx context.Context, r *http.Request, c *issuer.Client) (any, int64, error) {
	n, _, err := count(r, "")
	if err != nil {
		return nil, 0, err
	}
	got, err := s.issuer.Number(ctx, c, r.PathValue("name"), n)
	return got, n, err
}

// state is the answer to GET /v1/sequences/{name}. Its numbers of 64 bits are texts, as those of [issuer.Numbers].
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

	Period sequence.Period `json:"period,omitzero"`
}

// inspect answers GET /v1/sequences/{name}.
func (s *Server) inspect(ctx context.Context, r *http.Request, c *issuer.Client) (any, int64, error) {
	info, err := s.issuer.Inspect(ctx, c, r.PathValue("name"))
	if err != nil {
		return nil, 0, err
	}
	d := info.Definition
	answer := state{
		Name: info.Name, Mode: d.Mode, Start: d.Start, Stride: d.Stride.By(), Offset: d.Stride.Offset(),
		Max: d.Max, Period: d.Period,
	}
	if d.Period == (sequence.Period{}) {
		answer.Last, answer.Left = &info.Last, &info.Left
	}
	if info.Left > 0 {
		answer.Next = &info.Next
	}
	return answer, 0, nil
}

package web

import (
	"context"
	"net/http"
	"time"

	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/service/internal/limit"
	"github.com/tickflake/tickflake/snowflake"
)

// layout is the answer to GET /v1/layout.
type layout struct {
	Layout       string  `json:"layout"` // as text
	Epoch        string  `json:"epoch"`
	Tick         float64 `json:"tick_seconds"`
	TimeBits     int     `json:"time_bits"`
	NodeBits     int     `json:"node_bits"`
	SequenceBits int     `json:"sequence_bits"`
	NodeLast     bool    `json:"node_last"`
	Node         int64   `json:"node"` // may change
	Strategy     string  `json:"strategy"`
	MaxBatch     int64   `json:"max_batch"`
	MaxNumbers   int64   `json:"max_numbers"`
}

// describe answers GET /v1/layout.
func (s *Server) describe(_ context.Context, _ *http.Request, c *issuer.Client) (any, int64, error) {
	l, config := s.issuer.Layout(), s.issuer.Config()
	ids, numbers := s.issuer.Largest(c)
	return layout{
		Layout: l.String(), Epoch: l.Epoch.UTC().Format(time.RFC3339Nano), Tick: l.Tick.Seconds(),
		TimeBits: l.TimeBits, NodeBits: l.NodeBits, SequenceBits: l.SequenceBits,
		NodeLast: l.Order == snowflake.TimeSequenceNode, Node: config.Generator.Node(),
		Strategy: config.Strategy, MaxBatch: ids, MaxNumbers: numbers,
	}, 0, nil
}

// status is the answer to GET /v1/status.
type status struct {
	Ready   bool    `json:"ready"`
	Reason  string  `json:"reason,omitempty"` // why it is not
	Uptime  float64 `json:"uptime_seconds"`
	Items   int64   `json:"items"` // IDs and numbers since the start, by all protocols
	Store   string  `json:"store"` // without a password; "": its name is not known
	Node    int64   `json:"node"`
	Lead    float64 `json:"lead_seconds"`
	MaxLead float64 `json:"max_lead_seconds"`
	Grant   float64 `json:"grant_seconds"` // that is left; below 0: it has ended
	Drift   float64 `json:"drift_seconds"`
	VMClock string  `json:"vmclock"` // by what copies of memory are noticed, or nothing
	Copies  uint64  `json:"copies"`  // that were

	Waits      uint64 `json:"waits"`
	Rejections uint64 `json:"rejections"`

	Sequences []openSequence `json:"sequences"` // that this server has open, and the client may use
	More      int            `json:"more"`      // open sequences that are not listed
}

// openSequence is a sequence that this server has open.
type openSequence struct {
	Name     string        `json:"name"`
	Mode     sequence.Mode `json:"mode"`
	Issued   uint64        `json:"issued"` // by this server
	Rate     float64       `json:"rate"`   // numbers per second
	Reserved int64         `json:"reserved,string"`
	Last     int64         `json:"last,string"`
	Left     int64         `json:"left,string"`
}

// status answers GET /v1/status. It never asks the store.
func (s *Server) status(_ context.Context, _ *http.Request, c *issuer.Client) (any, int64, error) {
	g := s.issuer.Config().Generator
	stats := g.Stats()
	answer := status{
		Ready: true, Uptime: s.issuer.Uptime().Seconds(), Items: s.issuer.Items(), Store: s.issuer.Config().StoreName, Node: g.Node(),
		Lead: stats.Lead.Seconds(), MaxLead: stats.MaxLead.Seconds(), Grant: stats.Remaining.Seconds(), Drift: stats.Drift.Seconds(),
		Waits: stats.Waits, Rejections: stats.Rejections, Sequences: []openSequence{}, VMClock: s.issuer.Noticed(),
	}
	if k, ok := g.Keeper(); ok {
		answer.Copies = k.Stats().Copies
	}
	if err := s.issuer.Ready(); err != nil {
		answer.Ready, answer.Reason = false, err.Error()
	}
	for _, seq := range s.issuer.OpenTo(c) {
		if len(answer.Sequences) == limit.Listed {
			answer.More++
			continue
		}
		stats := seq.Stats()
		answer.Sequences = append(answer.Sequences, openSequence{
			Name: seq.Name(), Mode: seq.Definition().Mode, Issued: stats.Issued, Rate: stats.Rate,
			Reserved: stats.Reserved, Last: stats.Last, Left: stats.Left,
		})
	}
	return answer, 0, nil
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

package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tickflakev1 "github.com/tickflake/tickflake/client/api/tickflake/v1"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
)

// messagesOf returns the messages of runs.
func (s *Server) messagesOf(runs []snowflake.Run) []*tickflakev1.Run {
	list := make([]*tickflakev1.Run, len(runs))
	for i, r := range runs {
		list[i] = &tickflakev1.Run{First: int64(r.First), Count: r.Count, Stride: r.Stride, UseWithin: durationpb.New(s.issuer.UseWithin(r))}
	}
	return list
}

// methods are those of the service.
var methods = []grpc.MethodDesc{
	method("Take", (*Server).take), method("Describe", (*Server).describe), method("Decode", (*Server).decode),
	method("Number", (*Server).number), method("GetSequence", (*Server).getSequence),
}

// countOf returns how many IDs or numbers a request asks for: 1, if it does not say.
func countOf(n *int64) int64 {
	if n == nil {
		return 1
	}
	return *n
}

// take returns IDs.
func (s *Server) take(ctx context.Context, c *issuer.Client, in *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, int64, error) {
	n := countOf(in.Count)
	runs, err := s.issuer.Runs(ctx, c, n, snowflake.ID(in.GetAfter()), nil)
	if err != nil {
		return nil, 0, err
	}
	return &tickflakev1.TakeResponse{Runs: s.messagesOf(runs), LayoutFingerprint: s.fingerprint}, n, nil
}

// describe returns the layout, and the limits.
func (s *Server) describe(_ context.Context, c *issuer.Client, _ *tickflakev1.DescribeRequest) (*tickflakev1.DescribeResponse, int64, error) {
	config, layout := s.config, s.issuer.Layout()
	ids, numbers := s.issuer.Largest(c)
	return &tickflakev1.DescribeResponse{
		Layout:       layout.String(),
		Epoch:        timestamppb.New(layout.Epoch),
		Tick:         durationpb.New(layout.Tick),
		TimeBits:     int32(layout.TimeBits),
		NodeBits:     int32(layout.NodeBits),
		SequenceBits: int32(layout.SequenceBits),
		NodeLast:     layout.Order == snowflake.TimeSequenceNode,
		Node:         config.Generator.Node(),
		Strategy:     config.Strategy,
		UseWithin:    durationpb.New(config.UseWithin),
		MaxBatch:     ids,
		MaxNumbers:   numbers,
	}, 0, nil
}

// decode returns the parts of an ID.
func (s *Server) decode(_ context.Context, _ *issuer.Client, in *tickflakev1.DecodeRequest) (*tickflakev1.DecodeResponse, int64, error) {
	d, err := s.issuer.Decode(snowflake.ID(in.GetId()))
	if err != nil {
		return nil, 0, err
	}
	return &tickflakev1.DecodeResponse{
		Id: int64(d.ID), Time: timestamppb.New(d.Time), Node: d.Node, Parts: d.Parts, Sequence: d.Sequence,
	}, 0, nil
}

// number returns numbers of a sequence.
func (s *Server) number(ctx context.Context, c *issuer.Client, in *tickflakev1.NumberRequest) (*tickflakev1.NumberResponse, int64, error) {
	n, err := s.issuer.Number(ctx, c, in.GetName(), countOf(in.Count))
	if err != nil {
		return nil, 0, err
	}
	return &tickflakev1.NumberResponse{
		First: n.First, Last: n.Last, Count: n.Count, Stride: n.Stride, Mode: modeOf(n.Mode),
	}, n.Count, nil
}

// getSequence returns the state of a sequence.
func (s *Server) getSequence(ctx context.Context, c *issuer.Client, in *tickflakev1.GetSequenceRequest) (*tickflakev1.GetSequenceResponse, int64, error) {
	info, err := s.issuer.Inspect(ctx, c, in.GetName())
	if err != nil {
		return nil, 0, err
	}
	d := info.Definition
	q := &tickflakev1.Sequence{
		Name: info.Name, Mode: modeOf(d.Mode), Period: d.Period.String(),
		Start: d.Start, Stride: d.Stride.By(), Offset: d.Stride.Offset(), Max: d.Max,
		Next: info.Next, Last: info.Last, Left: info.Left, WentBack: info.WentBack,
	}
	return &tickflakev1.GetSequenceResponse{Sequence: q}, 0, nil
}

func modeOf(m sequence.Mode) tickflakev1.Mode {
	if m == sequence.Ordered {
		return tickflakev1.Mode_MODE_ORDERED
	}
	return tickflakev1.Mode_MODE_SEGMENTED
}

package rpc

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	tickflakev1 "github.com/tickflake/tickflake/api/tickflake/v1"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service/internal/issuer"
	"github.com/tickflake/tickflake/snowflake"
)

// message is the message of a run. Its two parts lie together, for one allocation.
type message struct {
	run    tickflakev1.Run
	within durationpb.Duration
}

// messages are the messages of runs. They can be used again once they are sent.
type messages struct{ list []*tickflakev1.Run }

// of returns the messages of runs.
func (m *messages) of(runs []issuer.Run) []*tickflakev1.Run {
	if more := len(runs) - len(m.list); more > 0 {
		block := make([]message, more)
		for i := range block {
			m.list = append(m.list, block[i].link())
		}
	}
	list := m.list[:len(runs)]
	for i := range runs {
		from, to := &runs[i], list[i]
		to.First, to.Count, to.Stride = int64(from.First), from.Count, from.Stride
		to.UseWithin.Seconds = int64(from.UseWithin / time.Second)
		to.UseWithin.Nanos = int32(from.UseWithin % time.Second)
	}
	return list
}

func (m *message) link() *tickflakev1.Run {
	m.run.UseWithin = &m.within
	return &m.run
}

// methods are those of the service that are not streams.
var methods = []grpc.MethodDesc{
	method("Take", (*Server).take), method("Describe", (*Server).describe), method("Decode", (*Server).decode),
	method("Number", (*Server).number), method("GetSequence", (*Server).getSequence),
}

// take returns IDs.
func (s *Server) take(ctx context.Context, c *issuer.Client, in *tickflakev1.TakeRequest) (*tickflakev1.TakeResponse, int64, error) {
	n := cmp.Or(in.GetCount(), 1)
	// One allocation for the usual answer, which has one run.
	answer := new(struct {
		response tickflakev1.TakeResponse
		messages messages
		message  message
		list     [1]*tickflakev1.Run
		runs     [1]issuer.Run
	})
	runs, err := s.issuer.Runs(ctx, c, n, snowflake.ID(in.GetAfter()), answer.runs[:0])
	if err != nil {
		return nil, 0, err
	}
	answer.messages.list = append(answer.list[:0], answer.message.link())
	answer.response.Runs = answer.messages.of(runs)
	return &answer.response, n, nil
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
	d, err := s.issuer.Decode(strconv.FormatInt(in.GetId(), 10))
	if err != nil {
		return nil, 0, err
	}
	return &tickflakev1.DecodeResponse{
		Id: int64(d.ID), Time: timestamppb.New(d.Time), Node: d.Node, Parts: d.Parts, Sequence: d.Sequence,
	}, 0, nil
}

// number returns numbers of a sequence.
func (s *Server) number(ctx context.Context, c *issuer.Client, in *tickflakev1.NumberRequest) (*tickflakev1.NumberResponse, int64, error) {
	n, err := s.issuer.Number(ctx, c, in.GetName(), cmp.Or(in.GetCount(), 1))
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
		Name: info.Name, Mode: modeOf(d.Mode), Period: string(d.Period),
		Start: d.Start, Stride: d.Stride.By(), Offset: d.Stride.Offset(), Max: d.Max,
		Last: info.Last, Left: info.Left, WentBack: info.WentBack,
	}
	if d.Period == "" {
		q.Next = info.Next
	}
	return &tickflakev1.GetSequenceResponse{Sequence: q}, 0, nil
}

func modeOf(m sequence.Mode) tickflakev1.Mode {
	if m == sequence.Ordered {
		return tickflakev1.Mode_MODE_ORDERED
	}
	return tickflakev1.Mode_MODE_SEGMENTED
}

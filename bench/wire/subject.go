package wire

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/tickflake/tickflake/bench/measure"
	"github.com/tickflake/tickflake/internal/rig/servers"
)

// subject is a load on a server, and what was measured of it, with one sample per round.
type subject struct {
	row, column string
	load        load
	cpu         func(context.Context) (time.Duration, error) // of the server; nil: it is not measured
	unit        int                                          // the least operations of a turn

	n    int   // operations of the next turn
	err  error // why there is nothing, or no more
	rate []float64
	cost []float64 // processor time of the server for an operation, in nanoseconds
	p50  []float64
	p99  []float64
	// disturbed says in which rounds a hypervisor took processor time.
	disturbed []bool
}

// name is that of the subject in messages.
func (s *subject) name() string {
	if s.column == "" {
		return s.row
	}
	return s.row + ", " + s.column
}

// measure gives the load a turn that takes about so long. Unless it counts, it is to warm up.
func (s *subject) measure(ctx context.Context, box time.Duration, counts bool) {
	if s.err != nil || ctx.Err() != nil {
		return
	}
	runtime.GC() // the garbage of other loads
	if s.n == 0 {
		s.n = s.unit
	}
	disturbed := measure.WatchStolen()
	before, told := s.used(ctx)
	t, err := s.load(ctx, s.n)
	after, toldAfter := s.used(ctx)
	if err == nil && t.operations <= 0 {
		err = errors.New("it did nothing")
	}
	if err != nil {
		if ctx.Err() == nil && s.err == nil {
			s.err = err
		}
		return
	}
	s.n = max(s.unit, int(t.perSecond*box.Seconds()))
	if !counts || s.err != nil {
		return
	}
	s.rate, s.disturbed = append(s.rate, t.perSecond), append(s.disturbed, disturbed())
	if told && toldAfter {
		s.cost = append(s.cost, float64((after-before).Nanoseconds())/t.operations)
	}
	if t.p99 > 0 {
		s.p50, s.p99 = append(s.p50, t.p50), append(s.p99, t.p99)
	}
}

// rates are those of the rounds, to compare with another subject's.
func (s *subject) rates() measure.Samples {
	return measure.Samples{Wall: s.rate, Disturbed: s.disturbed}
}

// used returns the processor time of the server, and whether it is told.
func (s *subject) used(ctx context.Context) (time.Duration, bool) {
	if s.cpu == nil {
		return 0, false
	}
	used, err := s.cpu(ctx)
	if err != nil && !errors.Is(err, errUntold) && ctx.Err() == nil {
		s.err = err
	}
	return used, err == nil
}

// reason is why the subject was not measured, or not to the end.
func (s *subject) reason() string {
	if s.err == nil {
		return ""
	}
	return "not measured, or not to the end: " + servers.Reason(s.err)
}

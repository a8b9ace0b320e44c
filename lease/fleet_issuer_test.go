package lease_test

import (
	"context"
	"time"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/fleettest"
	"github.com/tickflake/tickflake/snowflake"
)

// issuer is what a thread knows of its calls.
type issuer struct {
	kind    callKind
	calling bool   // is within a call of the generator
	closed  bool   // a Close has returned
	late    bool   // it had when the present call began
	least   uint64 // that the process had noticed by then, see process

	changed <-chan struct{} // of the window, as the generator has it
	limit   uint64          // of what was granted then

	looks     [2]look      // the latest readings of the clock
	floor     snowflake.ID // the largest ID that was returned before the call
	floorTick uint64
	latest    snowflake.ID // of the stream
	batch     [64]snowflake.ID
}

// look is a reading of the clock, and the end of what was granted by then.
type look struct{ tick, limit uint64 }

type callKind uint8

const (
	single callKind = iota
	batched
	streamed
	bounded
)

// looked notes a reading of the clock that the generator makes.
func (t *thread) looked() {
	if !t.calling {
		return
	}
	t.looks[1] = t.looks[0]
	t.looks[0] = look{t.f.tickAt(t.p.M.Wall()), t.limit}
}

// tickAt is the tick of a machine's reading.
func (f *fleet) tickAt(wall int64) uint64 {
	return uint64(max(fleettest.Start.Add(time.Duration(wall)).Sub(f.layout.Epoch), 0) / f.layout.Tick)
}

// issue is what a thread that issues IDs does.
func (p *process) issue(t *thread) {
	f := p.f
	var stream *generator.Stream
	for round := 0; ; round++ {
		if f.Calm {
			t.Pass(f.Between(1, f.Period/4))
		} else if round > 0 && !f.Often(f.pBurst) {
			t.Pass(f.Between(1, f.think))
		}
		if f.Issues > f.most && !f.Calm {
			t.Pass(f.Period)
		}
		t.kind = f.calls[f.Rng.IntN(len(f.calls))]
		t.floor, t.floorTick = p.largest, p.tick
		if f.mutant != nil && f.mutant.check != nil && !f.mutant.check(p, t) {
			continue
		}
		t.late, t.calling, t.least = t.closed, true, p.noticed
		ids := t.batch[:1]
		n := 0
		var err error
		switch t.kind {
		case single:
			ids[0], err = p.gen.Next()
		case batched:
			ids = t.batch[:1+f.Rng.IntN(f.batch)]
			n, err = p.gen.NextN(ids)
			ids = ids[:n]
		case streamed:
			if stream == nil {
				stream = p.gen.Stream()
			}
			ids[0], err = stream.Next()
		case bounded:
			ids[0], err = p.bounded(t)
		}
		t.calling = false
		if err != nil && t.kind != batched {
			ids = nil
		}
		for _, id := range ids {
			if t.late {
				f.Fail("close", "%s was closed, and issues %d", p.Name, id)
			}
			f.issued(t, id)
		}
		if err != nil {
			p.err = err
			f.refused(t, err)
			t.Pass(f.Between(f.Period/64+1, f.Period/8+2)) // as a caller who tries again does
		}
		if f.Over {
			return
		}
	}
}

// bounded issues one ID with a context that ends after some time.
func (p *process) bounded(t *thread) (snowflake.ID, error) {
	f := p.f
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	t.Ctx = ctx
	defer func() { t.Ctx = nil }()
	patience := 2 * f.longest
	if !f.Calm || f.Often(256) {
		patience = f.Between(0, f.Period)
	}
	f.At(patience, func() { t.Cancelled(ctx, cancel) })
	return p.gen.NextContext(ctx)
}

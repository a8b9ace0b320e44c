package measure

import (
	"context"
	"runtime"
	"time"
)

// Batch is an operation that can be repeated. Its turn is a batch that takes about the target
// time, after an unmeasured lead-in. The figures of a turn are "wall" and "cpu" in nanoseconds,
// "allocs" and "bytes", each per operation, and those that Do returns.
type Batch struct {
	// Do does it n times, at different places in memory, which the turns take in turn.
	Do     []Do
	Unit   int           // divides n; 0 stands for 1
	LeadIn int           // the least lead-in, which uses up what has gathered, such as the rest of a tick; -1: none
	Most   int           // bounds a batch; 0 is 1 << 26
	Target time.Duration // of a turn

	n, turns int
}

// Do does an operation n times. The figure "wall" takes the place of the time that it took.
type Do = func(ctx context.Context, n int) (Figures, error)

// Turn is that of a [Load]. The first one chooses the length of a batch.
func (b *Batch) Turn(ctx context.Context) (Figures, error) {
	b.Unit = max(b.Unit, 1)
	if b.Most == 0 {
		b.Most = 1 << 26
	}
	calibrating := b.n == 0
	b.n = max(b.n, b.Unit)
	for {
		took, f, err := b.measure(ctx)
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		// A batch that turns out far too short, because the machine was busy at first, is
		// lengthened and measured again.
		factor := min(10, float64(b.Target)/float64(max(took, 1)))
		again := factor > 4 || calibrating && factor > 2
		if calibrating || again {
			longer := max(1, int(float64(b.n)*factor+0.5)/b.Unit) * b.Unit
			most := max(b.Most/b.Unit, 1) * b.Unit
			again = again && b.n < most && longer != b.n
			b.n = min(longer, most)
		}
		if !again || b.Target == 0 {
			if !calibrating {
				b.turns++
			}
			return f, nil
		}
	}
}

func (b *Batch) measure(ctx context.Context) (took time.Duration, f Figures, err error) {
	do, lead := b.Do[b.turns%len(b.Do)], 0
	if b.LeadIn >= 0 {
		lead = (max(b.LeadIn, b.n/16) + b.Unit - 1) / b.Unit * b.Unit
	}
	// The memory is read before the lead-in, because the batch must follow the lead-in at once.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if lead > 0 {
		if _, err := do(ctx, lead); err != nil {
			return 0, nil, err
		}
	}
	used, untold := CPUTime()
	began := time.Now()
	own, err := do(ctx, b.n)
	took = time.Since(began)
	if err != nil {
		return 0, nil, err
	}
	now, late := CPUTime()
	runtime.ReadMemStats(&after)
	n, all := float64(b.n), float64(b.n+lead)
	f = Figures{"wall": float64(took) / n, "allocs": float64(after.Mallocs-before.Mallocs) / all, "bytes": float64(after.TotalAlloc-before.TotalAlloc) / all}
	if untold == nil && late == nil {
		f["cpu"] = float64(now-used) / n
	}
	for name, v := range own {
		f[name] = v
	}
	if wall := own["wall"]; wall > 0 {
		took = time.Duration(wall * n)
	}
	return took, f, nil
}

package scorecard

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
)

// fleet is F14: six processes, whose clocks are off by up to three hours, on eight node
// numbers. They issue, are killed, closed, set to another hour, or stand still for
// longer than their grants, at random. The lease draws among free node numbers, so the
// figures vary from run to run.
func fleet(ctx context.Context, r *record) {
	const members, rounds, each = 6, 400, 20 * time.Millisecond
	random := rand.New(rand.NewPCG(14, 14))
	hours := func() time.Duration { return time.Duration(random.IntN(7)-3) * time.Hour }
	layout := snowflake.Default()
	layout.NodeBits = 3
	cells := leasetest.NewMemory()
	type machine struct {
		clock   *clocktest.Virtual
		store   *leasetest.Memory
		process *process
		still   int // for so many rounds it stands still
	}
	var machines []*machine
	for range members {
		machines = append(machines, &machine{clock: clocktest.NewVirtual(noon.Add(hours())), store: cells.Client()})
	}
	for range rounds {
		passes := time.Duration(random.IntN(500)) * each
		for _, m := range machines {
			m.clock.Advance(passes)
		}
		m := machines[random.IntN(members)]
		if m.process == nil {
			p, err := r.start(ctx, m.clock, m.store, lease.WithLayout(layout), lease.WithWindow(15*time.Second))
			if none := (*lease.NoFreeNodeError)(nil); errors.As(err, &none) {
				r.Errors++ // and tries again later
			} else if err != nil {
				r.failed(err)
				return
			}
			m.process, m.still = p, 0
			continue
		}
		if m.still--; m.still > 0 {
			continue
		}
		switch random.IntN(20) {
		case 0: // killed
			m.store.Crash()
			m.process = nil
		case 1:
			if err := m.process.gen.Close(); err != nil {
				r.failed(err)
			}
			m.process = nil
		case 2:
			m.clock.Step(hours())
		case 3:
			m.still = random.IntN(8)
		default:
			r.calls(m.process, each, time.Duration(1+random.IntN(50))*each)
		}
	}
}

package scorecard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/lease/leasetest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores/directory"
)

// fleet is F14: six processes, whose clocks are up to three hours wrong, on eight node
// numbers. At random they issue, are killed, are closed, have their clocks set, or stand
// still for longer than their grants. The lease draws node numbers at random, so the
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
		still   int // rounds for which it stands still
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
				r.Errors++ // the process tries again in a later round
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

// outage is F15: one process asks for ten IDs a second. For two minutes its store is away,
// then it loses every other answer, and then every write arrives two minutes late, the
// latest first. In between the store is well for a minute.
func outage(ctx context.Context, r *record) {
	const every, bad = 100 * time.Millisecond, 2 * time.Minute
	clock, store := clocktest.NewVirtual(noon), leasetest.NewMemory()
	var until time.Duration // true time when the store is well again, even if a call waits for that
	fault := func(leasetest.Op) leasetest.Fault { return leasetest.None }
	store.Before = func(_ context.Context, op leasetest.Op) leasetest.Fault {
		if clock.Passed() >= until {
			return leasetest.None
		}
		return fault(op)
	}
	p, err := r.start(ctx, clock, store)
	if err != nil {
		r.failed(err)
		return
	}
	swaps := 0
	for _, next := range []func(leasetest.Op) leasetest.Fault{
		func(leasetest.Op) leasetest.Fault { return leasetest.Unavailable },
		func(op leasetest.Op) leasetest.Fault {
			if op.Kind == leasetest.OpSwap {
				swaps++
			}
			return []leasetest.Fault{leasetest.None, leasetest.ReplyLost}[swaps%2]
		},
		func(leasetest.Op) leasetest.Fault { return leasetest.Delayed },
	} {
		r.calls(p, every, time.Minute)
		fault, until = next, clock.Passed()+bad
		r.calls(p, every, bad)
		for i := len(store.Late()) - 1; i >= 0; i-- {
			store.Deliver(i)
		}
		// The keeper asks the store again within a second.
		r.calls(p, every, 1100*time.Millisecond)
		if !r.call(p) {
			r.violate(generatortest.NoRecovery, "the store had been well for more than a second, and a call failed")
		}
	}
	if err := p.gen.Close(); err != nil {
		r.failed(err)
	}
}

// clone is F19: a process and a copy of its memory, each of which asks for two IDs every
// 10 ms. Both continue from the same grant.
func clone(ctx context.Context, r *record) {
	const window = 9 * time.Second
	clock, cells := clocktest.NewVirtual(noon), leasetest.NewMemory()
	original, err := r.start(ctx, clock, cells.Client(), lease.WithWindow(window))
	if err != nil {
		r.failed(err)
		return
	}
	copied, err := r.start(ctx, clock, &replay{Memory: cells.Client(), claim: cells.Peek(original.keeper.Node())}, lease.WithWindow(window))
	if err != nil {
		r.failed(err)
		return
	}
	for clock.Wall().Before(noon.Add(3 * window)) {
		for _, p := range []*process{original, copied} {
			r.call(p)
			r.call(p)
		}
		clock.Advance(10 * time.Millisecond)
	}
	for _, p := range []*process{original, copied} {
		if err := p.gen.Close(); err != nil {
			r.failed(err)
		}
	}
}

// replay is a store that answers the first write with the claim of another process, so
// that the writer continues as a copy of that process. After that it is the store itself.
type replay struct {
	*leasetest.Memory
	claim lease.Cell
	done  atomic.Bool
}

func (s *replay) List(ctx context.Context) ([]lease.Cell, error) {
	if !s.done.Load() {
		return nil, nil
	}
	return s.Memory.List(ctx)
}

func (s *replay) Swap(ctx context.Context, old lease.Cell, value []byte) (lease.Cell, error) {
	if s.done.CompareAndSwap(false, true) {
		return s.claim, nil
	}
	return s.Memory.Swap(ctx, old, value)
}

// damages are what may happen to the file of a node number.
var damages = []struct {
	name string
	do   func(data string) string
}{
	{"emptied", func(string) string { return "" }},
	{"truncated", func(data string) string { return data[:len(data)/2] }},
	{"overwritten with garbage", func(string) string { return "\x00\xff\x17 what is this?\n" }},
	{"overwritten with zeros", func(data string) string { return strings.Repeat("\x00", len(data)) }},
	{"edited to a lower limit", func(data string) string { return strings.Replace(data, `"limit":4`, `"limit":3`, 1) }},
	{"written twice over", func(data string) string { return data + data }},
}

// torn is F20: the file of a node number is damaged in each of these ways. A process that
// starts must refuse, name the file, and leave it as it is. With the old file back, it
// must start above all IDs that were issued.
func torn(ctx context.Context, r *record) {
	dir, err := os.MkdirTemp("", "tickflake-torn-")
	if err != nil {
		r.Skipped = "there is no place for a directory: " + err.Error()
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	state := filepath.Join(dir, "state")
	now := noon
	begin := func() (*process, error) { // one process after the other, each a minute later
		now = now.Add(time.Minute)
		store, err := directory.Open(state)
		if err != nil {
			return nil, err
		}
		return r.start(ctx, clocktest.NewVirtual(now), store, lease.WithNode(lease.NodeNumber(9)), lease.WithWindow(time.Second))
	}
	use := func() error {
		p, err := begin()
		if err != nil {
			return err
		}
		r.calls(p, time.Millisecond, 20*time.Millisecond)
		return p.gen.Close()
	}
	if err := use(); err != nil {
		r.failed(err)
		return
	}
	path := filepath.Join(state, "0000009.cell")
	for _, damage := range damages {
		if err := r.tear(path, damage.do, begin); err != nil {
			r.failed(fmt.Errorf("%s: %w", damage.name, err))
			return
		}
		if err := use(); err != nil {
			r.failed(fmt.Errorf("%s and put right: %w", damage.name, err))
		}
	}
}

// tear damages a file, has a process begin on it, and puts the old file back.
func (r *record) tear(path string, damage func(string) string, begin func() (*process, error)) error {
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	worse := damage(string(whole))
	if worse == string(whole) {
		return errors.New("it is not damaged")
	}
	if err := os.WriteFile(path, []byte(worse), 0o600); err != nil {
		return err
	}
	p, err := begin()
	if err == nil {
		r.calls(p, time.Millisecond, 20*time.Millisecond) // to see the consequence
		r.violate(generatortest.NoStart, "a process began on a file that was damaged")
		return p.gen.Close()
	}
	r.Errors++
	if corrupt := (*directory.CorruptError)(nil); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), path) {
		r.violate(generatortest.WrongError, "the error does not say that %s is damaged: %v", path, err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != worse {
		r.violate(generatortest.NoRecovery, "the file was changed: %v", err)
	}
	return os.WriteFile(path, whole, 0o600)
}

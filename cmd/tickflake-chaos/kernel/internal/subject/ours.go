package subject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tickflake/tickflake/client"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/lease"
	"github.com/tickflake/tickflake/monoclock"
	"github.com/tickflake/tickflake/sequence"
	"github.com/tickflake/tickflake/service"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/stores"
	_ "github.com/tickflake/tickflake/stores/redis"
	"github.com/tickflake/tickflake/strategies"
)

const (
	// The clocks of a subject.
	monotonic = "monoclock"
	raw       = "raw"

	openLimit   = 20 * time.Second // for a store: a busy host's disk takes seconds
	countLimit  = 2 * time.Second  // for a call of a sequence, unless the fault says longer: see Place.Timeout
	fixedNode   = 7                // the node number of generators without a lease
	waitWithin  = 3 * time.Second  // how wrong a clock may be by the kernel's word: see Place.Wait
	batch       = 8                // IDs of a call
	randomBelow = 64               // bounds a random start of each tick's sequence
)

// wall is the raw wall clock: every step reaches the generator.
type wall struct{}

func (wall) Now() time.Time { return time.Now().Round(0) } // without the monotonic reading

// ours returns the strategies on each clock, with and without a lease, the sequences and
// the service.
func ours() []Subject {
	var all []Subject
	for _, s := range []struct {
		name, how string
		strategy  strategies.Strategy
		waits     time.Duration // at most
	}{
		{"default", "Default()", strategies.Default(), time.Second},
		{"reject", "Reject()", strategies.Reject(), 0},
		{"wait 5ms", "WaitUpTo(5ms)", strategies.WaitUpTo(5 * time.Millisecond), 5 * time.Millisecond},
		{"borrow 1s", "BorrowUpTo(1s)", strategies.BorrowUpTo(time.Second), 0},
	} {
		for _, clock := range []string{monotonic, raw} {
			for _, leased := range []bool{true, false} {
				all = append(all, strategySubject(s.name, s.how, clock, leased, s.strategy, s.waits, nil))
			}
		}
	}
	// A random start needs no more than the best and the worst setting.
	for _, leased := range []bool{true, false} {
		clock := map[bool]string{true: monotonic, false: raw}[leased]
		s := strategySubject("random start", "Default()", clock, leased, strategies.Default(), time.Second, nil, generator.WithSequenceStart(strategies.StartRandom(randomBelow)))
		s.How += fmt.Sprintf(", WithSequenceStart(StartRandom(%d))", randomBelow)
		all = append(all, s)
	}
	long := snowflake.Default() // so that a block of a stream lasts
	long.Tick, long.TimeBits, long.SequenceBits = 64*long.Tick, long.TimeBits-6, long.SequenceBits+6
	batches := strategySubject("batches", "Default(), a tick of 64ms", monotonic, true, strategies.Default(), time.Second, func(gen *generator.Generator) next {
		return func(ctx context.Context) (string, time.Duration, error) {
			ids := make([]snowflake.ID, batch)
			_, err := gen.NextNContext(ctx, ids)
			return strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", And), 0, err
		}
	}, generator.WithLayout(long))
	batches.Batch = batch
	all = append(all, batches, strategySubject("a stream", "Default(), a tick of 64ms", monotonic, true, strategies.Default(), time.Second, func(gen *generator.Generator) next {
		return withLead(gen, gen.Stream().NextContext)
	}, generator.WithLayout(long)))
	return append(all, sequenceSubject(sequence.Segmented), sequenceSubject(sequence.Ordered), serviceSubject())
}

// strategySubject promises what the documentation of package generator does: order in one
// process, whatever the clock does; no duplicate across restarts with a lease only; and
// no wait beyond the strategy's. Waits for slots and for a grant are counted apart, so
// with a lease there are two. form is another than single calls of NextContext.
func strategySubject(name, how, clock string, leased bool, strategy strategies.Strategy, waits time.Duration, form func(*generator.Generator) next, more ...generator.Option) Subject {
	s := Subject{
		Name: name + ", " + clock, Group: Ours, Ordered: true, Steady: clock == monotonic, Restarts: leased, Shares: leased, Leased: leased,
		Bound: waits,
	}
	options := append([]generator.Option{generator.WithStrategy(strategy)}, more...)
	source := fmt.Sprintf("New(WithNode(%d))", fixedNode)
	if leased {
		s.Name += ", lease"
		s.Bound *= 2
		source = "Open, a directory"
	}
	s.How = fmt.Sprintf("generator.%s, strategies.%s", source, how)
	if clock == raw {
		s.How += ", WithClock of time.Now"
		options = append(options, generator.WithClock(wall{}))
	}
	s.Open = func(ctx context.Context, at Place) (Source, error) {
		gen, err := openGenerator(ctx, at, leased, options...)
		if err != nil {
			return Source{}, err
		}
		source := Source{Close: gen.Close}
		if form == nil {
			source.Next, source.Time = withLead(gen, gen.NextContext), timeOf(gen)
		} else {
			source.Next = form(gen)
		}
		if leased {
			source.Restored = gen.Restored
		}
		return source, nil
	}
	return s
}

func openGenerator(ctx context.Context, at Place, leased bool, options ...generator.Option) (*generator.Generator, error) {
	if !leased { // with a clock of its own, or all subjects of this number would share a word
		return generator.New(append([]generator.Option{generator.WithNode(fixedNode), generator.WithClock(monoclock.New())}, options...)...)
	}
	options = append(options, generator.WithLogger(at.logger()))
	if at.Window > 0 {
		options = append(options, generator.WithLeaseOptions(lease.WithWindow(at.Window)))
	}
	if at.Wait {
		options = append(options, generator.WithWallWithin(waitWithin))
	}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	return generator.Open(ctx, at.store("ids"), options...)
}

// store returns the URL of a store: a directory in the subject's state, whose name may
// have a comma, unless there is a server.
func (at Place) store(name string) string {
	return cmp.Or(at.Store, "file:"+filepath.Join(at.Dir, name))
}

func (at Place) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(at.Log, nil))
}

// next is that of a Source.
type next = func(context.Context) (id string, lead time.Duration, err error)

// timeOf returns a function that tells the time of an ID.
func timeOf(gen *generator.Generator) func(string) time.Time {
	return func(text string) time.Time {
		id, _ := snowflake.Parse(text)
		d, _ := gen.Layout().Decode(id) // an ID of this layout
		return d.Time
	}
}

// withLead tells of each ID how far it is ahead of the clock of its generator, or 0.
func withLead(gen *generator.Generator, issue func(context.Context) (snowflake.ID, error)) next {
	return func(ctx context.Context) (string, time.Duration, error) {
		id, err := issue(ctx)
		if err != nil {
			return "", 0, err
		}
		d, err := gen.Layout().Decode(id)
		return id.String(), max(d.Time.Sub(gen.Clock().Now()), 0), err
	}
}

// sequenceSubject promises what docs/sequences.md does: no number twice, by any process,
// and order in a process. A call without a deadline waits for the store up to the timeout.
func sequenceSubject(mode sequence.Mode) Subject {
	reserve := 2 * sequence.DefaultMaxStep // a segment, and the next one
	if mode == sequence.Ordered {
		reserve = 0
	}
	return Subject{
		Name: string(mode) + " sequence", Group: Ours, How: fmt.Sprintf("sequence.Open, %s, a directory", mode),
		Ordered: true, Steady: true, Restarts: true, Shares: true, Reserve: reserve, Bound: countLimit, Counted: true,
		Open: func(ctx context.Context, at Place) (Source, error) {
			bounded, cancel := context.WithTimeout(ctx, openLimit)
			defer cancel()
			store, err := stores.Open(bounded, at.store("numbers"))
			if err != nil {
				return Source{}, err
			}
			numbers, err := sequence.Open(bounded, store, "orders", sequence.WithLogger(at.logger()), sequence.WithTimeout(cmp.Or(at.Timeout, countLimit)), sequence.WithDefinition(sequence.Definition{Mode: mode}))
			if err != nil {
				return Source{}, errors.Join(err, store.Close())
			}
			return Source{
				Next: func(ctx context.Context) (string, time.Duration, error) {
					n, err := numbers.Next(ctx)
					return strconv.FormatInt(n, 10), 0, err
				},
				Restored: numbers.Restored,
				Close:    func() error { return errors.Join(numbers.Close(), store.Close()) },
			}, nil
		},
	}
}

// fetchLimit is the client's timeout.
const fetchLimit = 10 * time.Second

// serviceSubject is a server and its client, over gRPC on loopback. Both are in one
// process: a signal reaches both, as that of a machine that stops does. The client
// promises order, and no wait beyond a timeout since a server has answered, and the
// timeout of the attempt that runs then. The timeout is longer than by default: a busy host
// stops its machine for seconds.
func serviceSubject() Subject {
	return Subject{
		Name: "service and client", Group: Ours, Ordered: true, Steady: true, Restarts: true, Leased: true,
		How:   "service.New with generator.Open, a directory; client.Open over gRPC on loopback, in the same process",
		Bound: 2 * fetchLimit,
		Open:  openService,
	}
}

func openService(ctx context.Context, at Place) (Source, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Source{}, err
	}
	gen, err := openGenerator(ctx, at, true, generator.WithStrategy(strategies.Default()))
	if err != nil {
		return Source{}, errors.Join(err, listener.Close())
	}
	log := at.logger()
	server, err := service.New(service.Config{Generator: gen, GRPC: listener, Logger: log})
	if err != nil {
		return Source{}, errors.Join(err, gen.Close(), listener.Close())
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(running) }()
	end := func() error { stop(); return errors.Join(<-ended, gen.Close()) }
	ids, err := client.Open(ctx, []string{listener.Addr().String()}, client.WithLogger(log), client.WithTimeout(fetchLimit))
	if err != nil {
		return Source{}, errors.Join(err, end())
	}
	return Source{
		Next: withLead(gen, ids.Next),
		// The server's memory was restored as well. It is told first, so that the client
		// fetches nothing of the old grant.
		Restored: func(ctx context.Context) error { return errors.Join(gen.Restored(ctx), ids.Restored(ctx)) },
		Close:    func() error { return errors.Join(ids.Close(), end()) },
	}, nil
}

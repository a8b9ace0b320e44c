//go:build simulate

package simulation

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/internal/word"
	"github.com/tickflake/tickflake/snowflake"
	"github.com/tickflake/tickflake/strategies"
)

// seeds is how many a test runs. SEEDS in the environment asks for more.
func seeds(t *testing.T) int {
	text := os.Getenv("SEEDS")
	if text == "" {
		if raceEnabled {
			return 500
		}
		return 1500
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// TestClean finds nothing wrong with the generator.
func TestClean(t *testing.T) { clean(t, Random, seeds(t)) }

// TestCounted finds nothing wrong with windows of counted numbers.
func TestCounted(t *testing.T) { clean(t, RandomCounted, 4*seeds(t)) }

func clean(t *testing.T, program func(seed uint64) Config, n int) {
	t.Helper()
	if result, found := Search(program, n); found {
		t.Fatalf("seed %d: %v\n%v\n%s", result.Config.Seed, result.Violations, result.Config.Ops, strings.Join(result.Trace, "\n"))
	}
}

// TestReached shows that the programs of the tests above come to what is checked.
func TestReached(t *testing.T) {
	leased := func(seed uint64) Config {
		for seed *= 100; ; seed++ {
			if c := Random(seed); c.Lease {
				return c
			}
		}
	}
	for _, c := range []struct {
		program func(seed uint64) Config
		n       uint64
		reached []string
	}{
		{leased, 100, []string{
			"error *generator.GrantError", "error *fmt.wrapError", "error *errors.errorString", // ErrClosed
			"which is refused: true, for good: true", "which is refused: true, for good: false",
			"keeper: or free", "caller 0: or free", // of the one that ends a span, and of one that helps
			"keeper: store limit", "compare-and-swap soft#2: ", "next#2 fails: it is 0x1", // a race to end it
			"keeper: revokes", "draws ",
			"waits for 100ms", "has closed the generator",
		}},
		{RandomCounted, 300, []string{
			"more true, ok true", "more true, ok false", "more false, ok false", // of a sealed window
			"swap queued: ", "add lost", "keeper: or free", "caller 0: or free", "compare-and-swap next",
			"keeper: revokes", "compare-and-swap free#2 fails", "first false",
		}},
	} {
		var trace strings.Builder
		for seed := range c.n {
			run := c.program(seed + 1)
			run.Trace = &trace
			require.False(t, Run(run).Failed(), "seed %d", run.Seed)
		}
		for _, reached := range c.reached {
			assert.True(t, strings.Contains(trace.String(), reached), reached)
		}
	}
}

// TestInOrder runs programs of which all is known.
func TestInOrder(t *testing.T) {
	for _, c := range []Config{
		{
			Lease: true, Term: 5, Start: time.Second, SequenceBits: 2, Strategy: strategies.BorrowUpTo(time.Second),
			Ops: []Op{{Kind: Batch, N: 9}, {Kind: Move, N: 3}, {Kind: Extend, N: 9}, {Kind: Revoke}, {Kind: Batch, N: 9}, {Kind: Move, N: 0}, {Kind: Stream, N: 9}, {Kind: Seal}, {Kind: IDs, N: 1}},
		},
		{
			Counted: true,
			Ops:     []Op{{Kind: Queue, N: 5}, {Kind: Queue, N: 5, D: 3}, {Kind: Count, N: 3}, {Kind: Count, N: 3}, {Kind: Count, N: 2}, {Kind: Count, N: 1}, {Kind: Seal}, {Kind: Count, N: 1}},
		},
	} {
		result := Run(c)
		require.False(t, result.Failed(), "%v\n%s", result.Violations, strings.Join(result.Trace, "\n"))
	}
}

// TestSeedRepeats runs the same seeds twice, and holds every byte of the traces
// against each other.
func TestSeedRepeats(t *testing.T) {
	n := uint64(seeds(t) / 30)
	hashes := map[uint64]bool{}
	for seed := range n {
		var traces [2]bytes.Buffer
		var results [2]Result
		for i := range traces {
			c := Random(seed)
			c.Trace = &traces[i]
			results[i] = Run(c)
			results[i].Config = Config{}
		}
		require.Equal(t, traces[0].String(), traces[1].String(), "seed %d", seed)
		require.Equal(t, results[0], results[1])
		quiet := Run(Random(seed))
		require.Equal(t, quiet.Hash, results[0].Hash, "a trace changes nothing: seed %d", seed)
		hashes[quiet.Hash] = true
	}
	assert.Len(t, hashes, int(n), "every seed is a schedule of its own")
}

// sharedWord issues from one word as the generator does, but for how it is written.
type sharedWord struct {
	env  Env
	last word.Uint64
	swap func(word *word.Uint64, last, next uint64) bool
}

func (w *sharedWord) tick() uint64 {
	return uint64(w.env.Clock.Now().Sub(w.env.Layout.Epoch) / w.env.Layout.Tick)
}

func (w *sharedWord) Next() (snowflake.ID, error) {
	for {
		tick := w.tick()
		last := w.last.Load()
		next := max(last+1, tick<<w.env.Layout.SequenceBits)
		if w.swap(&w.last, last, next) {
			sequence := next & (1<<w.env.Layout.SequenceBits - 1)
			return snowflake.ID((next>>w.env.Layout.SequenceBits<<w.env.Layout.NodeBits|uint64(w.env.Node))<<w.env.Layout.SequenceBits | sequence), nil
		}
	}
}

// wordProgram is a random program for a sharedWord.
func wordProgram(seed uint64, swap func(word *word.Uint64, last, next uint64) bool) Config {
	c := Random(seed)
	c.Strategy, c.Sequence, c.TimeBits, c.Start = strategies.LastTimestampPlusOne(), strategies.StartZero(), 41, 100*time.Hour
	c.Lease, c.Order, c.Nodeless, c.SequenceBits = false, snowflake.TimeNodeSequence, false, min(c.SequenceBits, 7)
	for i, op := range c.Ops {
		if !op.fault() {
			c.Ops[i] = Op{Kind: IDs, N: max(op.N, 1)}
		}
	}
	c.Core = func(e Env) Core {
		w := &sharedWord{env: e, swap: swap}
		word.Name(&w.last, "word")
		w.last.Store(w.tick()<<e.Layout.SequenceBits - 1)
		return w
	}
	return c
}

// unlockedProgram runs M6 of the catalogue: an unlocked read-modify-write.
func unlockedProgram(seed uint64) Config {
	return wordProgram(seed, func(word *word.Uint64, _, next uint64) bool {
		word.Store(next)
		return true
	})
}

func TestUnlockedWriteIsCaught(t *testing.T) {
	result, found := Search(unlockedProgram, 20)
	require.True(t, found, "within 20 seeds")
	t.Logf("seed %d: %s", result.Config.Seed, result.Violations[0])
	assert.Contains(t, []string{"duplicate", "order", "order of ticks"}, result.Violations[0].What)
	assert.Contains(t, result.Trace[len(result.Trace)-1], "violation: ")

	result, found = Search(func(seed uint64) Config {
		return wordProgram(seed, (*word.Uint64).CompareAndSwap)
	}, 200)
	assert.False(t, found, "with a compare-and-swap nothing is wrong: seed %d: %v", result.Config.Seed, result.Violations)
}

// failing is a Core that does what a test says.
type failing func() (snowflake.ID, error)

func (f failing) Next() (snowflake.ID, error) { return f() }

func TestViolations(t *testing.T) {
	ids := []Op{{Kind: IDs, N: 3}, {Kind: IDs, N: 3}}
	for what, next := range map[string]func(e Env) failing{
		"panic": func(Env) failing { return func() (snowflake.ID, error) { panic("ouch") } },
		"stuck": func(e Env) failing {
			return func() (snowflake.ID, error) {
				for {
					e.Clock.Now()
				}
			}
		},
		"clock not read":        func(Env) failing { return func() (snowflake.ID, error) { return 64, nil } },
		"error":                 func(Env) failing { return func() (snowflake.ID, error) { return 0, errors.New("no") } },
		"ID with an error":      func(Env) failing { return func() (snowflake.ID, error) { return 1, generator.ErrClosed } },
		"beyond the time field": func(e Env) failing { return func() (snowflake.ID, error) { e.Clock.Now(); return -1, nil } },
		"before the start":      func(e Env) failing { return func() (snowflake.ID, error) { e.Clock.Now(); return 1 << 4, nil } },
		"ahead":                 func(e Env) failing { return func() (snowflake.ID, error) { e.Clock.Now(); return 1<<40 | 1<<4, nil } },
		"stall": func(e Env) failing {
			return func() (snowflake.ID, error) {
				e.Clock.(reader).After(2 * time.Second)
				return 0, generator.ErrClosed
			}
		},
	} {
		c := Config{Callers: 2, SequenceBits: 4, Start: time.Second, Ops: ids, Core: func(e Env) Core { return next(e) }}
		result := Run(c)
		require.NotEmpty(t, result.Violations, what)
		assert.Equal(t, what, result.Violations[0].What, "%v", result.Violations)
		assert.NotEmpty(t, result.Trace)
	}
}

// BenchmarkRandom runs the programs that TestClean runs.
func BenchmarkRandom(b *testing.B) {
	steps := 0
	for i := 0; b.Loop(); i++ {
		steps += Run(Random(uint64(i))).Steps
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "seeds/s")
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}

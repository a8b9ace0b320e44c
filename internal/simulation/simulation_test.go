//go:build simulate

package simulation

import (
	"bytes"
	"context"
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
		return 6000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// TestClean finds nothing wrong with the generator.
func TestClean(t *testing.T) {
	result, found := Search(t.Context(), Random, 1, seeds(t))
	if !found {
		return
	}
	t.Fatalf("seed %d: %v %v\n%v\n%s", result.Config.Seed, result.Violations, result.Err, result.Config.Ops,
		strings.Join(result.Trace, "\n"))
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

func TestSearch(t *testing.T) {
	first, found := Search(t.Context(), unlockedProgram, 1, 5000)
	require.True(t, found)
	for seed := uint64(1); seed < first.Config.Seed; seed++ {
		assert.False(t, Run(unlockedProgram(seed)).Failed(), "it is the lowest")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, found = Search(ctx, unlockedProgram, 1, 1<<30)
	assert.False(t, found)
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
	result, found := Search(t.Context(), unlockedProgram, 1, 20)
	require.True(t, found, "within 20 seeds")
	t.Logf("seed %d: %s", result.Config.Seed, result.Violations[0])
	assert.Contains(t, []string{"duplicate", "order", "order of ticks"}, result.Violations[0].What)
	assert.Contains(t, result.Trace[len(result.Trace)-1], "violation: ")

	result, found = Search(t.Context(), func(seed uint64) Config {
		return wordProgram(seed, (*word.Uint64).CompareAndSwap)
	}, 1, 200)
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

func TestRefuses(t *testing.T) {
	for says, c := range map[string]Config{
		"65 callers":     {Callers: 65},
		"-1 callers":     {Callers: -1},
		"kind 200":       {Ops: []Op{{Kind: 200}}},
		"batch 0":        {Ops: []Op{{Kind: Batch}}},
		"ids -1":         {Ops: []Op{{Kind: IDs, N: -1}}},
		"a Core":         {Ops: []Op{{Kind: Close}}, Core: func(Env) Core { return nil }},
		"widths":         {SequenceBits: 60},
		"sequence start": {SequenceBits: 2, Sequence: strategies.StartRandom(5)},
		"1s after now":   {Start: -time.Second},
	} {
		result := Run(c)
		assert.True(t, result.Failed(), says)
		assert.ErrorContains(t, result.Err, says)
	}
	assert.False(t, Run(Config{}).Failed(), "the zero Config runs nothing")
}

// BenchmarkSeed runs schedules of two callers and ten operations.
func BenchmarkSeed(b *testing.B) {
	c := Config{Callers: 2, SequenceBits: 2, Start: time.Hour, Jitter: 200 * us, Strategy: strategies.BorrowUpTo(ms)}
	for range 9 {
		c.Ops = append(c.Ops, Op{Kind: IDs, N: 1})
	}
	c.Ops = append(c.Ops, Op{Kind: Batch, N: 6})
	steps := 0
	for i := 0; b.Loop(); i++ {
		c.Seed, c.Schedule = uint64(i), Schedule(i%3)
		result := Run(c)
		if result.Failed() {
			b.Fatal(result.Violations)
		}
		steps += result.Steps
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "seeds/s")
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
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

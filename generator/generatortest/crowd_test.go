package generatortest_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	gt "github.com/tickflake/tickflake/generator/generatortest"
	"github.com/tickflake/tickflake/monoclock/clocktest"
)

// The takeovers of a script stop a call at its first reading of the clock, at its
// second and at its third.
func TestTakeoverHolds(t *testing.T) {
	for _, reads := range []int{0, 1, 2, 3, 5} {
		var held []int // at which reading
		taking := false
		s := gt.Subject[int64]{Name: "reader"}
		var last atomic.Int64
		var process func(clock *clocktest.Virtual) gt.Process[int64]
		var reading atomic.Int64
		process = func(clock *clocktest.Virtual) gt.Process[int64] {
			calls := 0
			return gt.Process[int64]{
				Next: func() (int64, error) {
					calls++
					for i := range reads {
						before := clock.Passed()
						if taking {
							reading.Store(int64(i))
						}
						clock.Now()
						if clock.Passed() > before {
							held = append(held, i)
						}
					}
					reading.Store(-1)
					return last.Add(1), nil
				},
				Now: func() time.Time { return noon },
				Restart: func() (gt.Process[int64], error) {
					return process(clock), nil
				},
			}
		}
		s.New = func(clock *clocktest.Virtual) (gt.Process[int64], error) { return process(clock), nil }
		r := gt.RunScript(s, parse("takeover 1s; takeover 2s; takeover 3s; takeover 4s"))
		assert.Empty(t, lines(r))
		assert.Equal(t, 4*(1+20+20+20)+4, r.Issued)
		want := map[int][]int{0: nil, 1: {0, 0}, 2: {0, 1, 0}, 3: {0, 1, 2, 0}, 5: {0, 1, 2, 0}}
		assert.Equal(t, want[reads], held, "%d readings", reads)
	}
}

// What a process does after a takeover is not judged, but for duplicates.
func TestBesideATakeover(t *testing.T) {
	var old, second atomic.Int64
	calls := 0
	subject := func(first func(n int) (int64, error)) gt.Subject[int64] {
		old.Store(0)
		second.Store(1000)
		calls = 0
		return gt.Subject[int64]{
			Name: "two",
			New: func(clock *clocktest.Virtual) (gt.Process[int64], error) {
				return gt.Process[int64]{
					Next: func() (int64, error) { clock.Now(); calls++; return first(calls) },
					Restart: func() (gt.Process[int64], error) {
						return gt.Process[int64]{Next: func() (int64, error) { return second.Add(1), nil }}, nil
					},
				}, nil
			},
			CheckError: func(error) error { return errBad },
		}
	}
	r := gt.RunScript(subject(func(n int) (int64, error) { return int64(5000 - n), nil }), parse("ids 1; takeover 1s; ids 1"))
	assert.Empty(t, lines(r), "lower and lower, and the other begins below")
	assert.Equal(t, 1+21+40+1+4, r.Issued)
	r = gt.RunScript(subject(func(n int) (int64, error) { return 0, errNo }), parse("takeover 1s; ids 1"))
	assert.Empty(t, lines(r), "it fails")
	assert.Zero(t, r.Errors)
	r = gt.RunScript(subject(func(n int) (int64, error) { return map[int]int64{1: 1020, 2: 1021}[min(n, 3)] + int64(n/3*n), nil }), parse("takeover 1s; ids 1"))
	require.Equal(t, []string{
		"duplicate: 1020 was issued before, in step 1, call 20, 1s in (step 1, call 21, 1s in)",
		"duplicate: 1021 was issued before, in step 1, call 22, 1s in (step 1, call 23, 1s in)",
	}, lines(r))
}

// Of several callers, all are at work, and what they return is judged.
func TestCallers(t *testing.T) {
	racy := func(read func(*atomic.Int64, func()) int64) gt.Subject[int64] {
		return gt.Subject[int64]{
			Name: "crowd",
			New: func(clock *clocktest.Virtual) (gt.Process[int64], error) {
				var word atomic.Int64
				return gt.Process[int64]{Next: func() (int64, error) {
					return read(&word, func() { clock.Now() }), nil
				}}, nil
			},
		}
	}
	script := parse("callers 8; ids 5000; ids 999 over 10s; pass 1s")
	r := gt.RunScript(racy(func(word *atomic.Int64, look func()) int64 { look(); return word.Add(1) }), script)
	assert.Empty(t, lines(r))
	assert.Equal(t, 5000+999+4, r.Issued)

	r = gt.RunScript(racy(func(word *atomic.Int64, look func()) int64 {
		was := word.Load()
		look()
		word.Store(was + 1)
		return was + 1
	}), script)
	assert.Positive(t, r.Duplicates, "an update is lost")
	assert.Positive(t, r.Violated[gt.Duplicate])

	r = gt.RunScript(racy(func(word *atomic.Int64, look func()) int64 { return -word.Add(1) }), script)
	assert.Greater(t, r.Violated[gt.Disorder], 5000, "while they are at work, too")
	assert.Zero(t, r.Duplicates)

	failing := racy(nil)
	failing.New = func(*clocktest.Virtual) (gt.Process[int64], error) {
		return gt.Process[int64]{Next: func() (int64, error) { return 0, errNo }}, nil
	}
	failing.CheckError = func(err error) error { return fmt.Errorf("not %w", err) }
	r = gt.RunScript(failing, parse("callers 3; ids 10"))
	assert.Equal(t, 10+4, r.Errors)
	assert.Equal(t, 10+4, r.Violated[gt.WrongError])

	// What depends on when a call began is not judged.
	failing.CheckError, failing.Tick = nil, ms
	failing.Time = func(int64) time.Time { return noon }
	r = gt.RunScript(failing, parse("callers 3; ids 10"))
	assert.Equal(t, 4, r.Violated[gt.Rejected], "of the single calls after the script")
	slow := racy(nil)
	slow.New = func(clock *clocktest.Virtual) (gt.Process[int64], error) {
		var word atomic.Int64
		return gt.Process[int64]{Next: func() (int64, error) {
			if n := word.Add(1); n > 20 {
				return n, nil
			}
			clock.Sleep(ms)
			return word.Load(), nil
		}}, nil
	}
	slow.Claim.Unordered = true
	r = gt.RunScript(slow, parse("callers 2; ids 20"))
	assert.Zero(t, r.LongestStall)
	assert.Zero(t, r.Violated[gt.Stall])

	var inside, most atomic.Int64
	busy := racy(func(word *atomic.Int64, look func()) int64 {
		for n := inside.Add(1); n > most.Load(); {
			most.Store(n)
		}
		look()
		look()
		inside.Add(-1)
		return word.Add(1)
	})
	gt.RunScript(busy, parse("callers 8; ids 5000"))
	assert.Greater(t, most.Load(), int64(1), "they meet")
	assert.LessOrEqual(t, most.Load(), int64(8))
}

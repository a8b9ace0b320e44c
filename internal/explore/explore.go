// Package explore searches all states of a model, for tests: every order of its steps, from every
// start. Of all ways to break what must hold it finds a shortest one, and prints its steps.
//
// You need these names: [Model] and its [Step]s, [Key] to write what matters in a state, [Worlds] and
// [Mutants] to test a model and models that are broken.
//
// A visited state is held as the first 128 bits of the SHA-256 of its key. Two states of n have the
// same 128 bits with a chance below n²/2^129, and then one of them is not searched: for 20 million
// states that is 6 in 10^25.
package explore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// Model is what can happen, step by step. S is a state, a value whose copies by assignment are
// independent.
//
// The methods are called by several goroutines at once. They depend on their arguments only, and
// change nothing but what they return.
type Model[S any] interface {
	// Start returns the states to begin with.
	Start() []S
	// Step makes s, which is a copy of a state, the state after it, and returns what has happened, with an
	// error if that breaks what must hold: nothing is searched beyond it. pick(n) is 0 to n-1, and all
	// of these are tried, so Step depends on nothing else. It returns [Impossible] if there is no step
	// of these picks. The texts of the steps of a state differ.
	Step(s *S, pick func(n int) int) (Step, error)
	// Key appends the canonical bytes of s: the same for states that are alike, so that whatever
	// can happen after one of them can happen after the other.
	Key(s *S, buf []byte) []byte
}

// Step is one thing that happens: a text, as of [fmt.Sprintf], and the numbers in it.
type Step struct {
	text    string
	numbers [8]int16
	n       int8
}

// Say returns a step with at most 8 numbers.
func Say(text string, numbers ...int) Step {
	s := Step{text: text, n: int8(len(numbers))}
	for i, x := range numbers {
		s.numbers[i] = int16(x)
	}
	return s
}

var errImpossible = errors.New("there is no step of these picks")

// Impossible is what [Model]'s Step returns instead of a step.
func Impossible() (Step, error) { return Step{}, errImpossible }

// steps calls yield for each step that is possible in a state. next is the same variable in all calls.
func steps[S any](m Model[S], from *S, yield func(step Step, next *S, err error)) {
	var picked, of []int
	at, next := 0, new(S)
	pick := func(n int) int {
		if at == len(picked) {
			picked, of = append(picked, 0), append(of, n)
		}
		at++
		return picked[at-1]
	}
	for {
		at, *next = 0, *from
		if step, err := m.Step(next, pick); err != errImpossible {
			yield(step, next, err)
		}
		last := len(picked) - 1
		for ; last >= 0 && picked[last]+1 == of[last]; last-- {
		}
		if last < 0 {
			return
		}
		picked, of = picked[:last+1], of[:last+1]
		picked[last]++
	}
}

// String is the text of the step in a script.
func (s Step) String() string {
	var args []any
	for _, x := range s.numbers[:s.n] {
		args = append(args, x)
	}
	return fmt.Sprintf(s.text, args...)
}

// Report is the outcome of a search.
type Report struct {
	States      int // all different ones
	Transitions int // steps that were tried
	Depth       int // the most steps from the start that a state needs
	Time        time.Duration
	Complete    bool // every state was searched; false after a violation
	Violation   *Violation
}

// Violation is a shortest way to break what must hold.
type Violation struct {
	Err    error    // of the last step
	Script []string // the texts of all steps
}

// String returns the figures in one line.
func (r Report) String() string {
	s := fmt.Sprintf("%d states, %d transitions, depth %d, %.1f s", r.States, r.Transitions, r.Depth, r.Time.Seconds())
	switch {
	case r.Violation != nil:
		s += ", stopped at a violation"
	case !r.Complete:
		s += ", NOT COMPLETE"
	}
	return s
}

// String returns the error, and the steps, one a line.
func (v *Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, after %d steps:\n", v.Err, len(v.Script))
	for _, step := range v.Script {
		fmt.Fprintf(&b, "\t%s\n", step)
	}
	return b.String()
}

const (
	batchStates = 1024 // that one goroutine searches at a time
	inRow       = 8    // batches of each goroutine between two merges
)

// hash stands for a state.
type hash [16]byte

func hashOf(key []byte) hash {
	sum := sha256.Sum256(key)
	return hash(sum[:])
}

// visited is a state that was found, by its number.
type visited struct {
	parent uint32 // the number of the state that it was found from, or noParent
	step   Step   // from there
}

// noParent is the parent of a state at the start.
const noParent = 1<<32 - 1

// search is the state of a search.
type search[S any] struct {
	m       Model[S]
	known   map[hash]struct{}
	visited []visited
	report  Report
}

// found is a state that waits to be searched.
type found[S any] struct {
	visited
	hash  hash
	state *S
}

// Search searches all states of a model, those that need fewer steps first, until a step breaks
// what must hold, or the limit has passed, unless that is 0. The result is the same in each run, but for its time
// and the limit.
func Search[S any](m Model[S], limit time.Duration) Report {
	s := &search[S]{m: m, known: map[hash]struct{}{}}
	s.run(time.Now(), limit)
	return s.report
}

func (s *search[S]) run(began time.Time, limit time.Duration) {
	defer func() { s.report.States, s.report.Time = len(s.visited), time.Since(began) }()
	// There is much garbage, and little else.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	var level []found[S]
	var buf []byte
	for _, state := range s.m.Start() {
		level, buf = s.found(level, visited{parent: noParent}, &state, buf)
	}
	level = s.merge(nil, level)
	workers := runtime.GOMAXPROCS(0)
	for ; ; s.report.Depth++ {
		var next []found[S]
		first := len(s.visited) - len(level) // the number of the first state of the level
		for len(level) > 0 {
			turn := level[:min(len(level), workers*inRow*batchStates)]
			batches := slices.Collect(slices.Chunk(turn, batchStates))
			results := make([]result[S], len(batches))
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for i := w; i < len(batches); i += workers {
						results[i] = s.expand(first+i*batchStates, batches[i])
					}
				})
			}
			wg.Wait()
			for _, r := range results {
				s.report.Transitions += r.transitions
				if r.err != nil {
					s.report.Violation = &Violation{r.err, s.script(r.broken)}
					return
				}
				next = s.merge(next, r.found)
			}
			if limit > 0 && time.Since(began) >= limit {
				return
			}
			clear(turn) // frees the states
			first, level = first+len(turn), level[len(turn):]
		}
		if len(next) == 0 {
			s.report.Complete = true
			return
		}
		level = next
	}
}

// result is what was found from a batch.
type result[S any] struct {
	found       []found[S]
	transitions int
	broken      visited // the first step that breaks what must hold
	err         error   // of that step, or nil
}

// expand tries the steps of states with numbers from first on. It only reads what goroutines share.
func (s *search[S]) expand(first int, batch []found[S]) (r result[S]) {
	var buf []byte
	for i := range batch {
		steps(s.m, batch[i].state, func(step Step, next *S, err error) {
			r.transitions++
			switch from := (visited{uint32(first + i), step}); {
			case err == nil:
				r.found, buf = s.found(r.found, from, next, buf)
			case r.err == nil:
				r.broken, r.err = from, err
			}
		})
		if r.err != nil {
			break
		}
	}
	return r
}

// found appends a state, unless it was visited. It returns buf, to be used again.
func (s *search[S]) found(list []found[S], from visited, state *S, buf []byte) ([]found[S], []byte) {
	buf = s.m.Key(state, buf[:0])
	h := hashOf(buf)
	if _, known := s.known[h]; !known {
		kept := *state
		list = append(list, found[S]{from, h, &kept})
	}
	return list, buf
}

// merge numbers the new states of a batch, and appends them to the level.
func (s *search[S]) merge(level, batch []found[S]) []found[S] {
	for _, f := range batch {
		if _, known := s.known[f.hash]; !known {
			s.known[f.hash] = struct{}{}
			s.visited = append(s.visited, f.visited)
			level = append(level, f)
		}
	}
	return level
}

// script returns the texts of the steps up to one.
func (s *search[S]) script(last visited) (texts []string) {
	for ; last.parent != noParent; last = s.visited[last.parent] {
		texts = append(texts, last.step.String())
	}
	slices.Reverse(texts)
	return texts
}

// deviates is how many steps Check goes on from a state whose key another state had before.
const deviates = 2

// Check compares a model with its Key: of all states that have one key, each must have the same
// steps, as seen by the keys of the states after them. It takes the first state of each key for the one
// to compare with, and goes on from another one for a few steps only. It stops after most states, and
// returns how many states and how many keys it saw.
func Check[S any](m Model[S], most int) (states, keys int, err error) {
	type item struct {
		state S
		off   int // so many steps from a first state
	}
	first := map[hash]map[hash]string{} // of each key, the steps of its first state
	seen := map[hash]bool{}
	var wait []item
	for _, start := range m.Start() {
		wait = append(wait, item{state: start})
	}
	for len(wait) > 0 && len(seen) < most {
		at := wait[0]
		wait = wait[1:]
		text := hashOf(fmt.Append(nil, at.state))
		if seen[text] {
			continue
		}
		seen[text] = true
		h := hashOf(m.Key(&at.state, nil))
		want, again := first[h]
		at.off++
		if !again {
			at.off = 0
		}
		after := map[hash]string{} // the keys of the other states after it, each with the text of a step to it
		steps(m, &at.state, func(step Step, next *S, err error) {
			if err != nil {
				after[hash{}] = step.String()
				return
			}
			if to := hashOf(m.Key(next, nil)); to != h {
				after[to] = step.String()
			}
			if at.off <= deviates {
				wait = append(wait, item{*next, at.off})
			}
		})
		if !again {
			first[h] = after
		} else if d := differ(want, after) + differ(after, want); d != "" {
			return len(seen), len(first), fmt.Errorf("this state has the key of another, and only one of them has%s: %+v", d, at.state)
		}
	}
	return len(seen), len(first), nil
}

// differ returns a step that a has and b has not.
func differ(a, b map[hash]string) string {
	for h, step := range a {
		if _, ok := b[h]; !ok {
			return fmt.Sprintf(" %q", step)
		}
	}
	return ""
}

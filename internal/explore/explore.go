// Package explore searches all states of a model, for tests: every order of its steps, from every
// start. Of all ways to break what must hold it finds a shortest one, as a script that runs again.
//
// You need these names: [Model], [Search], [Replay], and [Check], which checks a model's Key.
//
// A visited state is held as the first 128 bits of the SHA-256 of its key. Two states of n have the
// same 128 bits with a chance below n²/2^129, and then one of them is not searched: for 20 million
// states that is 6 in 10^25.
package explore

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"
)

// Model is what can happen, step by step. S is a state, a value whose copies by assignment are
// independent. A is a step: it has a text only when a script needs it, so a small value is best.
//
// The methods are called by several goroutines at once. They depend on their arguments only, and
// change nothing but what they return.
type Model[S any, A fmt.Stringer] interface {
	// Start returns the states to begin with.
	Start() []S
	// Steps calls yield for each step that is possible in s, with the state after it, or an error
	// if it breaks what must hold: nothing is searched beyond it. yield keeps no pointer, so next
	// may be the same variable in all calls. The texts of the steps of a state differ.
	Steps(s *S, yield func(step A, next *S, err error))
	// Key appends the canonical bytes of s: the same for states that are alike, so that whatever
	// can happen after one of them can happen after the other.
	Key(s *S, buf []byte) []byte
}

// A Loader is a Model whose keys tell the whole state. States that wait to be searched are held as
// keys then, which takes less memory.
type Loader[S any] interface {
	// Load returns a state with that key.
	Load(key []byte) S
}

// Limits say when a search ends before it is complete. A limit of 0 is none.
type Limits struct {
	States int
	Time   time.Duration
}

// Report is the outcome of a search.
type Report struct {
	States      int // all different ones
	Transitions int // steps that were tried
	Depth       int // the most steps from the start that a state needs
	Time        time.Duration
	Memory      uint64 // bytes that the process had of the system at most, garbage included
	Complete    bool   // every state was searched; false after a violation
	Violation   *Violation
}

// Violation is a shortest way to break what must hold.
type Violation struct {
	Err    error    // of the last step
	Script []string // the texts of all steps
}

// String returns the figures in one line.
func (r Report) String() string {
	s := fmt.Sprintf("%d states, %d transitions, depth %d, %.1f s, %d MB", r.States, r.Transitions, r.Depth, r.Time.Seconds(), r.Memory>>20)
	switch {
	case r.Violation != nil:
		s += ", stopped at a violation"
	case !r.Complete:
		s += ", NOT COMPLETE"
	}
	return s
}

// String returns the error, and the script as lines of a Go table.
func (v *Violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, after %d steps:\n", v.Err, len(v.Script))
	for _, step := range v.Script {
		fmt.Fprintf(&b, "\t%q,\n", step)
	}
	return b.String()
}

const (
	batchStates = 1024 // that one goroutine searches at a time
	inRow       = 8    // batches of each goroutine between two merges
)

// search is the state of a search.
type search[S any, A fmt.Stringer] struct {
	m       Model[S, A]
	load    func([]byte) S // nil: waiting states are held as they are
	visited table
	report  Report
}

// batch is a list of states: some that wait, with numbers in a row, or some that one goroutine
// has found.
type batch[S any] struct {
	first   int // the number of the first
	parents []uint32
	hashes  []hash
	keys    []byte // of a Loader: all keys,
	ends    []int  // and where each ends
	states  []S    // else
}

func (b *batch[S]) key(i int) []byte {
	if i == 0 {
		return b.keys[:b.ends[0]]
	}
	return b.keys[b.ends[i-1]:b.ends[i]]
}

// Search searches all states of a model, those that need fewer steps first, until a step breaks
// what must hold, or a limit is reached. The result is the same in each run, but for its time and
// memory and a limit of time.
func Search[S any, A fmt.Stringer](m Model[S, A], limits Limits) Report {
	began := time.Now()
	s := &search[S, A]{m: m, visited: table{index: make([]uint32, 1<<10)}}
	if l, ok := m.(Loader[S]); ok {
		s.load = l.Load
	}
	s.run(func() bool {
		return limits.States > 0 && s.visited.n >= limits.States || limits.Time > 0 && time.Since(began) >= limits.Time
	})
	s.report.States, s.report.Time = s.visited.n, time.Since(began)
	return s.report
}

func (s *search[S, A]) run(over func() bool) {
	// There is much garbage, and little else.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(3 << 30))
	var first batch[S]
	var buf []byte
	for _, start := range s.m.Start() {
		buf = s.found(&first, noParent, &start, buf)
	}
	level := s.merge(nil, &first)
	workers := runtime.GOMAXPROCS(0)
	for ; ; s.report.Depth++ {
		var next []*batch[S]
		for len(level) > 0 {
			turn := level[:min(len(level), workers*inRow)]
			results := make([]result[S], len(turn))
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() {
					for i := w; i < len(turn); i += workers {
						results[i] = s.expand(turn[i])
					}
				})
			}
			wg.Wait()
			s.report.Memory = max(s.report.Memory, memory())
			for i := range results {
				r := &results[i]
				s.report.Transitions += r.transitions
				if r.broken != nil {
					s.report.Violation = s.script(*r.broken)
					return
				}
				next = s.merge(next, &r.found)
				turn[i] = nil // frees its memory
			}
			if over() {
				return
			}
			level = level[len(turn):]
		}
		if len(next) == 0 {
			s.report.Complete = true
			return
		}
		level = next
	}
}

// memory is what the process has of the system.
func memory() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// result is what was found from a batch.
type result[S any] struct {
	found       batch[S]
	transitions int
	broken      *uint32 // the first state with a step that breaks what must hold
}

// expand tries the steps of the states of a batch. It only reads what goroutines share.
func (s *search[S, A]) expand(b *batch[S]) (r result[S]) {
	var buf []byte
	for i := range b.hashes {
		state, number := s.state(b, i), uint32(b.first+i)
		s.m.Steps(&state, func(_ A, next *S, err error) {
			r.transitions++
			switch {
			case err == nil:
				buf = s.found(&r.found, number, next, buf)
			case r.broken == nil:
				r.broken = &number
			}
		})
		if r.broken != nil {
			break
		}
	}
	return r
}

func (s *search[S, A]) state(b *batch[S], i int) S {
	if s.load != nil {
		return s.load(b.key(i))
	}
	return b.states[i]
}

// found appends a state, unless it was visited. It returns buf, to be used again.
func (s *search[S, A]) found(b *batch[S], parent uint32, state *S, buf []byte) []byte {
	buf = s.m.Key(state, buf[:0])
	h := hashOf(buf)
	if s.visited.has(h) {
		return buf
	}
	b.parents, b.hashes = append(b.parents, parent), append(b.hashes, h)
	if s.load == nil {
		b.states = append(b.states, *state)
		return buf
	}
	b.keys = append(b.keys, buf...)
	b.ends = append(b.ends, len(b.keys))
	return buf
}

// merge numbers the new states of a batch, and appends them to the level.
func (s *search[S, A]) merge(level []*batch[S], from *batch[S]) []*batch[S] {
	for i, h := range from.hashes {
		if s.visited.has(h) {
			continue
		}
		if len(level) == 0 || len(level[len(level)-1].hashes) == batchStates {
			level = append(level, &batch[S]{first: s.visited.n})
		}
		s.visited.add(h, from.parents[i])
		to := level[len(level)-1]
		to.hashes = append(to.hashes, h)
		if s.load == nil {
			to.states = append(to.states, from.states[i])
			continue
		}
		to.keys = append(to.keys, from.key(i)...)
		to.ends = append(to.ends, len(to.keys))
	}
	return level
}

// script returns the violation after the state of that number. It takes the steps again, and
// looks for the states on the way by their hashes. No state is loaded on the way, so the texts
// name the same thing in the same way from the start to the end.
func (s *search[S, A]) script(number uint32) *Violation {
	var path []hash
	for n := number; n != noParent; n = s.visited.entry(n).parent {
		path = append(path, s.visited.entry(n).hash)
	}
	var at S
	for _, start := range s.m.Start() {
		if hashOf(s.m.Key(&start, nil)) == path[len(path)-1] {
			at = start
			break
		}
	}
	v := &Violation{Err: errors.New("the model's Key is wrong: states with one key have different steps: see explore.Check")}
	for i := len(path) - 2; i >= 0; i-- {
		here, ok := at, false
		s.m.Steps(&here, func(step A, next *S, err error) {
			if !ok && err == nil && hashOf(s.m.Key(next, nil)) == path[i] {
				v.Script, at, ok = append(v.Script, step.String()), *next, true
			}
		})
		if !ok {
			return v
		}
	}
	ok := false
	s.m.Steps(&at, func(step A, _ *S, err error) {
		if !ok && err != nil {
			v.Script, v.Err, ok = append(v.Script, step.String()), err, true
		}
	})
	return v
}

// Replay takes the steps of a script, and returns the error of the last one. If a step before
// breaks what must hold, or is not possible, the error says so.
func Replay[S any, A fmt.Stringer](m Model[S, A], script []string) error {
	states := m.Start() // all those in which the script may be so far
	for i, text := range script {
		var next []S
		var broken error
		for _, state := range states {
			m.Steps(&state, func(step A, to *S, err error) {
				switch {
				case step.String() != text:
				case err != nil:
					broken = err
				default:
					next = append(next, *to)
				}
			})
		}
		switch {
		case broken != nil && i < len(script)-1:
			return fmt.Errorf("step %d of %d, %q: %w", i+1, len(script), text, broken)
		case broken != nil:
			return broken
		case len(next) == 0:
			return fmt.Errorf("step %d of %d, %q, is not possible", i+1, len(script), text)
		}
		states = next
	}
	return nil
}

// deviates is how many steps Check goes on from a state whose key another state had before.
const deviates = 2

// Check compares a model with its Key: of all states that have one key, each must have the same
// steps, as seen by the keys of the states after them; and so must a state that was loaded from its
// key. It takes the first state of each key for the one to compare with, and goes on from another
// one for a few steps only. It stops after most states, and returns how many states and how many keys it saw.
func Check[S any, A fmt.Stringer](m Model[S, A], most int) (states, keys int, err error) {
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
	loader, _ := m.(Loader[S])
	for len(wait) > 0 && len(seen) < most {
		at := wait[0]
		wait = wait[1:]
		text := hashOf(fmt.Append(nil, at.state))
		if seen[text] {
			continue
		}
		seen[text] = true
		key := m.Key(&at.state, nil)
		h := hashOf(key)
		want, again := first[h]
		at.off++
		if !again {
			at.off = 0
		}
		after := stepsOf(m, &at.state, func(next *S) {
			if at.off <= deviates {
				wait = append(wait, item{*next, at.off})
			}
		})
		if !again {
			first[h] = after
		} else if d := differ(want, after); d != "" {
			return len(seen), len(first), fmt.Errorf("this state has the key of another, but not its steps: %s: %+v", d, at.state)
		}
		if loader == nil {
			continue
		}
		loaded := loader.Load(slices.Clone(key))
		if !bytes.Equal(m.Key(&loaded, nil), key) {
			return len(seen), len(first), fmt.Errorf("loaded from its key, this state has another key: %+v, and loaded %+v", at.state, loaded)
		}
		if d := differ(after, stepsOf(m, &loaded, func(*S) {})); d != "" {
			return len(seen), len(first), fmt.Errorf("loaded from its key, this state has other steps: %s: %+v, and loaded %+v", d, at.state, loaded)
		}
	}
	return len(seen), len(first), nil
}

// stepsOf returns the keys of the other states after a state, each with the text of a step to it.
func stepsOf[S any, A fmt.Stringer](m Model[S, A], s *S, each func(*S)) map[hash]string {
	all := map[hash]string{}
	own := hashOf(m.Key(s, nil))
	m.Steps(s, func(step A, next *S, err error) {
		if err != nil {
			all[hash{}] = step.String()
			return
		}
		if h := hashOf(m.Key(next, nil)); h != own {
			all[h] = step.String()
		}
		each(next)
	})
	return all
}

// differ returns a step that only one of two states has.
func differ(a, b map[hash]string) string {
	for h, step := range a {
		if _, ok := b[h]; !ok {
			return fmt.Sprintf("it lacks %q", step)
		}
	}
	for h, step := range b {
		if _, ok := a[h]; !ok {
			return fmt.Sprintf("it alone has %q", step)
		}
	}
	return ""
}

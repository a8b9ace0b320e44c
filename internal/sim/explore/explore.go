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
	"encoding/binary"
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

// steps calls yield for each step that is possible in a state, which is in next then.
func steps[S any](m Model[S], from, next *S, yield func(step Step, err error)) {
	var picked, of []int
	at := 0
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
			yield(step, err)
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
	Checked     int   // states with the key of another one that were compared with it
	Unlike      error // two of these that have not the same steps
}

// Violation is a shortest way to break what must hold.
type Violation struct {
	Err    error    // of the last step
	Script []string // the texts of all steps
}

// String returns the figures in one line.
func (r Report) String() string {
	s := fmt.Sprintf("%d states, %d transitions, depth %d, %.1f s, %d checked", r.States, r.Transitions, r.Depth, r.Time.Seconds(), r.Checked)
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
	known   map[hash]uint32 // the number of each visited state
	visited []visited
	checks  bool
	after   []uint64   // of each state that was searched, the sum of the keys of the other states after it
	again   []found[S] // to be checked
	report  Report
}

// found is a state that waits to be searched.
type found[S any] struct {
	visited
	hash  hash
	state *S
	check bool // if its key is known
}

// Search searches all states of a model, those that need fewer steps first, until a step breaks
// what must hold, or the limit has passed, unless that is 0. The result is the same in each run, but for its time
// and the limit. With checks, it also tests the Key, by one of 128 states that have the key of an earlier one: the
// keys of the states after it must be those of the states after the earlier one. A process makes one search at a time.
func Search[S any](m Model[S], limit time.Duration, checks bool) Report {
	s := &search[S]{m: m, known: map[hash]uint32{}, checks: checks}
	s.run(time.Now(), limit)
	return s.report
}

func (s *search[S]) run(began time.Time, limit time.Duration) {
	defer func() { s.report.States, s.report.Time = len(s.visited), time.Since(began) }()
	// There is much garbage, and at first little else.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	var level []found[S]
	for _, state := range s.m.Start() {
		level = append(level, found[S]{visited{parent: noParent}, hashOf(s.m.Key(&state, nil)), &state, false})
	}
	level = s.merge(nil, level)
	turns := runtime.GOMAXPROCS(0) * inRow * batchStates
	for ; ; s.report.Depth++ {
		if len(s.visited) > 1<<18 {
			debug.SetGCPercent(400)
		}
		var next []found[S]
		first := len(s.visited) - len(level) // the number of the first state of the level
		for len(level) > 0 {
			turn := level[:min(len(level), turns)]
			for _, r := range s.expandAll(first, turn) {
				s.report.Transitions += r.transitions
				if r.err != nil {
					s.report.Violation = &Violation{r.err, s.script(r.broken)}
					return
				}
				s.after = append(s.after, r.after...)
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
			s.check()
			return
		}
		level = next
	}
}

// expandAll tries the steps of states with numbers from first on, several at once.
func (s *search[S]) expandAll(first int, list []found[S]) []result[S] {
	batches := slices.Collect(slices.Chunk(list, batchStates))
	results := make([]result[S], len(batches))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(batches); i += workers {
				results[i] = s.expand(first+i*batchStates, batches[i])
			}
		})
	}
	wg.Wait()
	return results
}

// result is what was found from a batch.
type result[S any] struct {
	found       []found[S]
	after       []uint64 // of each state: see search
	transitions int
	broken      visited // the first step that breaks what must hold
	err         error   // of that step, or nil
}

// expand tries the steps of states with numbers from first on. It only reads what goroutines share.
func (s *search[S]) expand(first int, batch []found[S]) (r result[S]) {
	var buf []byte
	var after []hash
	next := new(S)
	for i := range batch {
		after = after[:0]
		steps(s.m, batch[i].state, next, func(step Step, err error) {
			r.transitions++
			from := visited{parent: uint32(first + i), step: step}
			if err != nil {
				if r.err == nil {
					r.broken, r.err = from, err
				}
				return
			}
			buf = s.m.Key(next, buf[:0])
			h := hashOf(buf)
			if h != batch[i].hash && s.checks && !slices.Contains(after, h) {
				after = append(after, h)
			}
			check := s.checks && r.transitions%128 == 0
			if _, known := s.known[h]; !known || check {
				kept := *next
				r.found = append(r.found, found[S]{from, h, &kept, check})
			}
		})
		if r.err != nil {
			break
		}
		sum := uint64(0)
		for _, h := range after {
			sum += binary.LittleEndian.Uint64(h[:])
		}
		r.after = append(r.after, sum)
	}
	return r
}

// merge numbers the new states of a batch, and appends them to the level.
func (s *search[S]) merge(level, batch []found[S]) []found[S] {
	for _, f := range batch {
		if _, known := s.known[f.hash]; !known {
			s.known[f.hash] = uint32(len(s.visited))
			s.visited = append(s.visited, f.visited)
			level = append(level, f)
		} else if f.check {
			s.again = append(s.again, f)
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

// check compares the states that were kept for it with the first ones that have their keys.
func (s *search[S]) check() {
	for _, r := range s.expandAll(0, s.again) {
		for _, after := range r.after {
			other := s.again[s.report.Checked]
			s.report.Checked++
			if first := s.known[other.hash]; s.after[first] != after {
				s.report.Unlike = fmt.Errorf("one key, and not the same steps, after\n\t%s\nand after\n\t%s",
					strings.Join(s.script(s.visited[first]), "\n\t"), strings.Join(s.script(other.visited), "\n\t"))
				return
			}
		}
		if r.err != nil {
			s.report.Violation = &Violation{r.err, append(s.script(s.again[r.broken.parent].visited), r.broken.step.String())}
			return
		}
	}
}

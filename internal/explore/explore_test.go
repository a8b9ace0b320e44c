package explore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// counter is the model of two processes that each read a number and then write one more, each
// rounds times. The right result is known, and so is the shortest way to lose a step.
type counter struct {
	rounds uint8
	atomic bool // reading and writing is one step
	key    func(s *counted, buf []byte) []byte
}

type counted struct {
	Value uint8
	P     [2]struct{ Read, Did uint8 } // Read: what it has read, plus 1; or 0
}

type countStep struct {
	p    uint8
	does string
}

func (s countStep) String() string { return fmt.Sprintf("%d %s", s.p, s.does) }

func (m counter) Start() []counted { return []counted{{}} }

var errLost = errors.New("a step is lost")

func (m counter) Steps(s *counted, yield func(countStep, *counted, error)) {
	for p := range s.P {
		next := *s
		me := &next.P[p]
		switch {
		case me.Read == 0 && me.Did < m.rounds && !m.atomic:
			me.Read = s.Value + 1
			yield(countStep{uint8(p), "reads"}, &next, nil)
		case me.Did < m.rounds:
			if m.atomic {
				me.Read = s.Value + 1
			}
			next.Value, me.Read = me.Read, 0
			me.Did++
			var err error
			if next.Value != next.P[0].Did+next.P[1].Did {
				err = errLost
			}
			yield(countStep{uint8(p), "writes"}, &next, err)
		}
	}
}

func (m counter) Key(s *counted, buf []byte) []byte {
	if m.key != nil {
		return m.key(s, buf)
	}
	return append(buf, s.Value, s.P[0].Read, s.P[0].Did, s.P[1].Read, s.P[1].Did)
}

// sorted does not tell the processes apart.
func sorted(s *counted, buf []byte) []byte {
	a, b := s.P[0], s.P[1]
	if a.Did < b.Did || a.Did == b.Did && a.Read < b.Read {
		a, b = b, a
	}
	return append(buf, s.Value, a.Read, a.Did, b.Read, b.Did)
}

// loading is counter whose waiting states are held as keys.
type loading struct{ counter }

func (loading) Load(key []byte) (s counted) {
	s.Value, s.P[0].Read, s.P[0].Did, s.P[1].Read, s.P[1].Did = key[0], key[1], key[2], key[3], key[4]
	return s
}

func TestSearchIsComplete(t *testing.T) {
	for name, test := range map[string]struct {
		m                          Model[counted, countStep]
		states, transitions, depth int
	}{
		// A grid of n+1 by n+1 states, with n(n+1) steps in each of two directions.
		"grid":         {counter{rounds: 200, atomic: true}, 201 * 201, 2 * 200 * 201, 400},
		"grid, loaded": {loading{counter{rounds: 200, atomic: true}}, 201 * 201, 2 * 200 * 201, 400},
		// The half with the diagonal.
		"sorted":         {counter{rounds: 200, atomic: true, key: sorted}, 201 * 202 / 2, 0, 400},
		"sorted, loaded": {loading{counter{rounds: 200, atomic: true, key: sorted}}, 201 * 202 / 2, 0, 400},
	} {
		t.Run(name, func(t *testing.T) {
			r := Search(test.m, Limits{})
			require.True(t, r.Complete)
			require.Nil(t, r.Violation)
			require.Equal(t, test.states, r.States)
			require.Equal(t, test.depth, r.Depth)
			if test.transitions > 0 {
				require.Equal(t, test.transitions, r.Transitions)
			}
		})
	}
}

func TestShortestViolation(t *testing.T) {
	want := []string{"0 reads", "1 reads", "0 writes", "1 writes"}
	for _, m := range []Model[counted, countStep]{
		counter{rounds: 9}, counter{rounds: 9, key: sorted}, loading{counter{rounds: 9}}, loading{counter{rounds: 9, key: sorted}},
	} {
		r := Search(m, Limits{})
		require.False(t, r.Complete)
		require.ErrorIs(t, r.Violation.Err, errLost)
		require.Len(t, r.Violation.Script, len(want))
		require.Equal(t, errLost, Replay(m, r.Violation.Script))
	}
	require.Equal(t, want, Search(counter{rounds: 9}, Limits{}).Violation.Script)
	require.Equal(t, "a step is lost, after 1 steps:\n\t\"0 writes\",\n", (&Violation{errLost, want[2:3]}).String())
}

func TestReplay(t *testing.T) {
	m := counter{rounds: 2}
	require.NoError(t, Replay(m, []string{"0 reads", "0 writes", "1 reads"}))
	require.EqualError(t, Replay(m, []string{"0 reads", "0 reads"}), `step 2 of 2, "0 reads", is not possible`)
	require.EqualError(t, Replay(m, []string{"0 reads", "1 reads", "0 writes", "1 writes", "1 reads"}), `step 4 of 5, "1 writes": a step is lost`)
}

func TestLimits(t *testing.T) {
	r := Search(counter{rounds: 200, atomic: true}, Limits{States: 1000})
	require.False(t, r.Complete)
	require.Nil(t, r.Violation)
	require.Less(t, r.States, 1000+2*batchStates)
	require.Contains(t, r.String(), "NOT COMPLETE")
	require.False(t, Search(counter{rounds: 200, atomic: true}, Limits{Time: time.Nanosecond}).Complete)
}

// A violation among many states is the same with one goroutine and with many.
func TestDeterministic(t *testing.T) {
	m := wide{}
	one := func(procs int) Report {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		r := Search(m, Limits{})
		r.Time, r.Memory = 0, 0
		return r
	}
	require.Equal(t, one(1), one(2))
	require.Equal(t, one(7), one(2))
	require.Equal(t, []string{"+1", "+40000"}, one(2).Violation.Script)
}

// wide is a model with many states at one step from the start, and several violations.
type wide struct{}

type plus uint32

func (p plus) String() string { return fmt.Sprintf("+%d", uint32(p)) }

func (wide) Start() []uint32 { return []uint32{0} }

func (wide) Steps(s *uint32, yield func(plus, *uint32, error)) {
	for i := range uint32(50_000) {
		next := *s + i
		switch {
		case *s == 0:
			yield(plus(i), &next, nil)
		case next > 40_000:
			yield(plus(i), &next, errLost)
			return
		case i > 20:
			if *s != 1 {
				return
			}
		default:
			yield(plus(i), &next, nil)
		}
	}
}

func (wide) Key(s *uint32, buf []byte) []byte { return binary.LittleEndian.AppendUint32(buf, *s) }

func TestCheck(t *testing.T) {
	states, keys, err := Check(counter{rounds: 9, atomic: true, key: sorted}, 1e6)
	require.NoError(t, err)
	require.Less(t, states, 10*10)
	require.Equal(t, 10*11/2, keys)
	_, _, err = Check(loading{counter{rounds: 9, key: sorted}}, 1e6)
	require.NoError(t, err)

	// The key leaves out what a process has read.
	forgets := func(s *counted, buf []byte) []byte { return append(buf, s.Value, s.P[0].Did, s.P[1].Did) }
	_, _, err = Check(counter{rounds: 2, key: forgets}, 1e6)
	require.ErrorContains(t, err, "has the key of another")
	// It sorts the parts of a process, each for itself.
	parts := func(s *counted, buf []byte) []byte {
		return append(buf, s.Value, max(s.P[0].Read, s.P[1].Read), min(s.P[0].Read, s.P[1].Read), max(s.P[0].Did, s.P[1].Did), min(s.P[0].Did, s.P[1].Did))
	}
	_, _, err = Check(counter{rounds: 2, key: parts}, 1e6)
	require.ErrorContains(t, err, "has the key of another")
	// Load forgets a process.
	_, _, err = Check(half{loading{counter{rounds: 2}}}, 1e6)
	require.ErrorContains(t, err, "loaded from its key")
}

type half struct{ loading }

func (m half) Load(key []byte) counted {
	s := m.loading.Load(key)
	s.P[1].Read = 0
	return s
}

// A violation that only a wrong Load leads to has no script.
func TestWrongLoad(t *testing.T) {
	v := Search(invents{loading{counter{rounds: 2}}}, Limits{}).Violation
	require.ErrorContains(t, v.Err, "see explore.Check")
}

type invents struct{ loading }

func (m invents) Load(key []byte) counted {
	s := m.loading.Load(key)
	s.P[1].Read = 1 // it has read 0, though nothing was read
	return s
}

func BenchmarkSearch(b *testing.B) {
	m := counter{rounds: 250, atomic: true}
	b.ReportAllocs()
	for b.Loop() {
		Search(m, Limits{})
	}
}

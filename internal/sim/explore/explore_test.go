package explore

import (
	"errors"
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
	lossy  bool // a step may be lost
	key    func(s *counted, buf []byte) []byte
}

type counted struct {
	Value uint8
	P     [2]struct{ Read, Did uint8 } // Read: what it has read, plus 1; or 0
}

func (m counter) Start() []counted { return []counted{{}} }

var errLost = errors.New("a step is lost")

func (m counter) Step(s *counted, pick func(int) int) (Step, error) {
	p := pick(len(s.P))
	me := &s.P[p]
	switch {
	case me.Did == m.rounds:
		return Impossible()
	case me.Read == 0 && !m.atomic:
		me.Read = s.Value + 1
		return Say("%d reads", p), nil
	case m.atomic:
		me.Read = s.Value + 1
	}
	s.Value, me.Read = me.Read, 0
	me.Did++
	var err error
	if !m.lossy && s.Value != s.P[0].Did+s.P[1].Did {
		err = errLost
	}
	return Say("%d writes", p), err
}

func (m counter) Key(s *counted, buf []byte) []byte {
	if m.key != nil {
		return m.key(s, buf)
	}
	return append(buf, s.Value, s.P[0].Read, s.P[0].Did, s.P[1].Read, s.P[1].Did)
}

// sorted does not tell the processes apart.
func sorted(s *counted, buf []byte) []byte {
	k := Key(append(buf, s.Value))
	k.Sorted(2, false, func(i int) { k.Add(uint64(s.P[i].Did), uint64(s.P[i].Read)) })
	return k
}

func TestSearchIsComplete(t *testing.T) {
	for name, test := range map[string]struct {
		m                          counter
		states, transitions, depth int
	}{
		// A grid of n+1 by n+1 states, with n(n+1) steps in each of two directions.
		"grid": {counter{rounds: 200, atomic: true}, 201 * 201, 2 * 200 * 201, 400},
		// The half with the diagonal.
		"sorted": {counter{rounds: 200, atomic: true, key: sorted}, 201 * 202 / 2, 200 * 202, 400},
	} {
		r := Search(test.m, 0, false)
		require.True(t, r.Complete, name)
		require.Nil(t, r.Violation, name)
		require.Equal(t, []int{test.states, test.depth}, []int{r.States, r.Depth}, name)
		if name == "grid" {
			require.Equal(t, test.transitions, r.Transitions)
		}
	}
}

// A shortest violation is found, the same with one goroutine and with many.
func TestShortestViolation(t *testing.T) {
	want := []string{"0 reads", "1 reads", "0 writes", "1 writes"}
	for _, procs := range []int{1, 2, 7} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			for _, m := range []counter{{rounds: 9}, {rounds: 9, key: sorted}} {
				r := Search(m, 0, false)
				require.False(t, r.Complete)
				require.ErrorIs(t, r.Violation.Err, errLost)
				require.Equal(t, want, r.Violation.Script)
			}
		}()
	}
	r := Search(counter{rounds: 200, atomic: true}, time.Nanosecond, false)
	require.Contains(t, r.String(), "NOT COMPLETE")
	require.Equal(t, "a step is lost, after 1 steps:\n\t0 writes\n", (&Violation{errLost, want[2:3]}).String())
}

func TestCheck(t *testing.T) {
	r := Search(counter{rounds: 200, atomic: true, key: sorted}, 0, true)
	require.NoError(t, r.Unlike)
	require.NotZero(t, r.Checked)
	for name, key := range map[string]func(s *counted, buf []byte) []byte{
		"leaves out how much the first has done": func(s *counted, buf []byte) []byte {
			return append(buf, s.Value, s.P[0].Read, s.P[1].Read, s.P[1].Did)
		},
		"sorts the parts of a process, each for itself": func(s *counted, buf []byte) []byte {
			return append(buf, s.Value, max(s.P[0].Read, s.P[1].Read), min(s.P[0].Read, s.P[1].Read), max(s.P[0].Did, s.P[1].Did), min(s.P[0].Did, s.P[1].Did))
		},
	} {
		require.ErrorContains(t, Search(counter{rounds: 20, lossy: true, key: key}, 0, true).Unlike, "not the same steps", name)
	}
}

package speed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// simulated is a clock that goes on by 1 ns at each reading, and while a call is made.
type simulated struct{ t time.Duration }

func (s *simulated) now() time.Duration {
	s.t++
	return s.t
}

// runSimulated runs a schedule of calls of which the i-th takes so long, and returns
// what was recorded and when the calls began.
func runSimulated(s schedule, takes func(i int) time.Duration) (late, begun []time.Duration, out outcome) {
	clock := &simulated{}
	out = s.run(clock.now, func() error {
		begun = append(begun, clock.t)
		clock.t += takes(len(begun) - 1)
		return nil
	}, func(d time.Duration) { late = append(late, d) })
	return late, begun, out
}

func TestCallsAreMadeWhenTheyAreDue(t *testing.T) {
	s := schedule{gap: time.Microsecond, calls: 100}
	late, begun, out := runSimulated(s, func(int) time.Duration { return 100 })
	require.Len(t, late, 100)
	for i := range late {
		assert.InDelta(t, 101, late[i], 2)
		assert.InDelta(t, time.Duration(i)*s.gap, begun[i], 3, "call %d", i)
	}
	assert.Equal(t, outcome{done: 100, took: s.length()}, out)
}

// A call that takes 50 gaps makes those behind it late too, by less and less.
func TestAStallIsSeenInAllCallsBehindIt(t *testing.T) {
	const stall, each = 50 * time.Microsecond, 100 * time.Nanosecond
	s := schedule{gap: time.Microsecond, calls: 200}
	late, begun, out := runSimulated(s, func(i int) time.Duration {
		if i == 10 {
			return stall
		}
		return each
	})
	require.Len(t, late, 200, "no call is left out")
	assert.Equal(t, 200, out.done)
	assert.InDelta(t, stall, late[10], 3)
	behind := 0
	for i := 11; i < 200; i++ {
		want := max(each, stall-time.Duration(i-10)*(s.gap-each))
		require.InDelta(t, want, late[i], 200, "call %d", i)
		if late[i] > 2*each {
			behind++
			assert.Less(t, begun[i]-begun[i-1], stall+3*each, "it is made as soon as the one before is over")
		}
	}
	assert.InDelta(t, 54, behind, 2)
}

func TestWhoCannotKeepUpIsStoppedAtTwiceTheLength(t *testing.T) {
	s := schedule{gap: time.Microsecond, calls: 100}
	late, begun, out := runSimulated(s, func(int) time.Duration { return 4 * time.Microsecond })
	assert.InDelta(t, 50, out.done, 2)
	assert.Len(t, begun, out.done)
	require.Len(t, late, 100, "those that were not made are recorded too")
	assert.Greater(t, out.took, 2*s.length())
	assert.Less(t, out.took, 2*s.length()+5*time.Microsecond)
	assert.Equal(t, out.took-99*s.gap, late[99], "as late as it was by then")
}

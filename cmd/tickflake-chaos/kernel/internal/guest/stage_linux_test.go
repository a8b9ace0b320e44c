package guest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/check"
)

// A program of a user that prints nothing has failed under a fault, and others can follow.
func TestMuteProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Stage{begin: time.Now()}
		l := &record{stage: s, check: check.New(nil)}
		s.carrier = &carrier{stage: s, records: []*record{l}, program: []string{"mute"}}
		assert.False(t, s.ready())
		verdict := l.result().Verdict
		assert.Zero(t, verdict.IDs)
		assert.Contains(t, verdict.Error, "it printed nothing")
	})
}

// What a thread slept too long counts where it meets a call, by the thread that stood longest.
func TestStood(t *testing.T) {
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	c := &control{threads: []napper{{since: begin}, {since: begin}}}
	for _, ms := range []int{6, 50, 300} { // the first is in time
		c.wakes(&c.threads[0], at(ms))
	}
	c.wakes(&c.threads[1], at(305))
	for _, test := range []struct{ from, to, want int }{
		{0, 10, 5}, {0, 305, 300}, {40, 60, 20}, {298, 303, 0}, {298, 330, 27}, {1000, 1400, 400}, {290, 304, 14},
	} {
		assert.Equal(t, time.Duration(test.want)*time.Millisecond, c.stood(at(test.from), at(test.to)), test)
	}
	c.threads = c.threads[:1]
	assert.Equal(t, 34*time.Millisecond+245*time.Millisecond, c.stood(at(16), at(300)))
}

package guest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

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

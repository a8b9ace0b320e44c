package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/bench/measure"
)

func TestTimeLeft(t *testing.T) {
	now := time.Unix(0, 0)
	out := new(bytes.Buffer)
	p := newProgress(out, false, []measure.Section{
		{ID: "a", Title: "A", Full: 100 * time.Second, Quick: time.Second},
		{ID: "b", Title: "B", Full: 60 * time.Second, Quick: time.Second},
	})
	p.now = func() time.Time { return now }
	p.begin(0)
	assert.Equal(t, 160*time.Second, p.left())
	now = now.Add(30 * time.Second)
	assert.Equal(t, 130*time.Second, p.left(), "by the plan")
	p.step(50, 100, "half")
	assert.Equal(t, 90*time.Second, p.left(), "it goes faster than planned")
	assert.InDelta(t, 50.0/160, p.share(), 1e-9)
	now = now.Add(1000 * time.Second)
	p.step(1, 100, "it began anew")
	assert.Equal(t, 60*time.Second, p.left(), "never below what the others take")
	p.begin(1)
	assert.Equal(t, 60*time.Second, p.left())
	p.step(7, 5, "more than all")
	assert.Equal(t, time.Duration(0), p.left())
	assert.InDelta(t, 1, p.share(), 1e-9)
	p.step(0, 0, "unknown")
	p.step(-1, -1, "nonsense")
	assert.Equal(t, 60*time.Second, p.left())
	p.end()
	assert.Equal(t, "1/2 a: A (about 2m40s left)\n2/2 b: B (about 1m0s left)\n", out.String(), "steps write no lines")
}

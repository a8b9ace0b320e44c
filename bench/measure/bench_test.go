package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// newBench returns a Bench on a fake clock.
func newBench(f *fake, works ...Work) *Bench {
	b := NewBench(works)
	b.meter = meter{f.now, f.cpu, f.watch}
	return b
}

// taking is work that takes so long each time.
func taking(f *fake, each time.Duration) Work {
	return Work{Name: each.String(), Do: func(n int) error {
		f.pass(time.Duration(n) * each)
		return nil
	}}
}

func TestCalibrateChoosesBatchesOfTheTarget(t *testing.T) {
	const target = 5 * time.Millisecond
	for _, test := range []struct {
		each time.Duration
		unit int
		want int
	}{
		{40, 0, 125_000},
		{40, 1024, 122 * 1024}, // 124,928
		{39_000, 256, 256},     // which is longer than the target
		{time.Second, 1, 1},
		{3 * time.Millisecond, 1, 2},
	} {
		f := &fake{}
		w := taking(f, test.each)
		w.Unit = test.unit
		b := newBench(f, w)
		b.Calibrate(t.Context(), 0, target)
		assert.Equal(t, test.want, b.subjects[0].batch, "%v, in units of %d", test.each, test.unit)
	}
}

func TestBatchesAreWholeUnitsAfterALeadIn(t *testing.T) {
	f := &fake{}
	var asked []int
	b := newBench(f, Work{Unit: 10, LeadIn: 25, Do: func(n int) error {
		asked = append(asked, n)
		f.pass(time.Duration(n) * time.Microsecond)
		return nil
	}})
	b.Calibrate(t.Context(), 0, 100*time.Microsecond)
	asked = nil
	b.Measure(0)
	assert.Equal(t, []int{30, 100}, asked)
	s := b.Samples()[0]
	assert.Equal(t, []float64{1000}, s.Wall, "the lead-in is not counted")
	assert.Equal(t, []float64{500}, s.CPU)
}

// A round is at one place, with its lead-in, also if its batch is measured again.
func TestRoundsTakePlacesInTurn(t *testing.T) {
	f := &fake{}
	var places []int
	at := func(place int) func(int) error {
		return func(n int) error {
			places = append(places, place)
			f.pass(time.Duration(n) * time.Microsecond)
			return nil
		}
	}
	b := newBench(f, Work{Do: at(0), Elsewhere: []func(int) error{at(1), at(2)}})
	b.Calibrate(t.Context(), 0, 8*time.Microsecond)
	places = nil
	for range 4 {
		b.Measure(0)
	}
	assert.Equal(t, []int{0, 0, 1, 1, 2, 2, 0, 0}, places)
	b.subjects[0].batch, places = 1, nil
	b.Measure(0)
	assert.Equal(t, []int{1, 1, 1, 1}, places)
}

var sink []byte

func TestAllocationsAreCountedForEachTime(t *testing.T) {
	f := &fake{}
	b := newBench(f, Work{Unit: 1000, Do: func(n int) error {
		f.pass(time.Millisecond)
		for range n {
			sink = make([]byte, 64)
		}
		return nil
	}})
	b.Measure(0)
	s := b.Samples()[0]
	assert.InDelta(t, 1, s.Allocs[0], 0.1)
	assert.InDelta(t, 64, s.Bytes[0], 8)
}

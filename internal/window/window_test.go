package window_test

import (
	"errors"
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/window"
)

const bits = 2 // four slots a tick

// TestMain lets a call that starts over without end overflow the stack at once, not at a gigabyte.
func TestMain(m *testing.M) {
	debug.SetMaxStack(1 << 20)
	m.Run()
}

// granted returns a window of node 1 with the ticks [from, to), whose keeper is asked
// from more on.
func granted(from, to, more uint64) *window.Ticks {
	w := window.NewTicks(bits, 1<<40)
	w.Grant(window.Range{Node: 1, From: from, To: to}, more)
	return w
}

// take takes n slots at tick, and returns them.
func take(w *window.Ticks, tick, ahead, n uint64) (slots []uint64) {
	slot, end, _ := w.Span().Take(tick, ahead, 0, n)
	for ; slot < end; slot++ {
		slots = append(slots, slot)
	}
	return slots
}

func asked(w *window.Ticks) bool {
	select {
	case <-w.More():
		return true
	default:
		return false
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestTake(t *testing.T) {
	w := granted(10, 20, 20)
	assert.Equal(t, []uint64{40, 41, 42}, take(w, 10, 0, 3))
	assert.Equal(t, []uint64{43}, take(w, 10, 0, 3), "not beyond the tick")
	assert.Empty(t, take(w, 10, 0, 1), "the tick is used up")
	_, _, ok := w.Span().Take(10, 0, 0, 1)
	assert.False(t, ok)
	assert.Equal(t, []uint64{44, 45}, take(w, 10, 1, 2), "one tick ahead")
	assert.Equal(t, []uint64{46}, take(w, 5, 6, 1), "the clock went back")
	assert.Equal(t, []uint64{76}, take(w, 19, 0, 1))
	assert.Empty(t, take(w, 20, 0, 1), "beyond the limit")
	assert.EqualValues(t, 20, w.Used())
}

// adds is how many bits of sequence let slots be taken by addition: 256 slots a tick, of which the last 64
// are left to swaps.
const adds = 8

// added takes a slot by addition as an issuer does whose clock is in tick.
func added(w *window.Ticks, tick uint64) (slot uint64, ok bool) {
	s := w.Span()
	end, open := s.Adding()
	if !open || end>>adds != tick {
		return 0, false
	}
	return s.Add(end)
}

func TestAdd(t *testing.T) {
	w := window.NewTicks(adds, 1<<40)
	w.Grant(window.Range{Node: 1, From: 10, To: 12}, 11)
	_, ok := added(w, 10)
	assert.False(t, ok, "no swap has taken a slot of the tick")
	take(w, 10, 0, 1)
	for want := uint64(10<<adds + 1); want <= 10<<adds+192; want++ {
		slot, ok := added(w, 10)
		require.True(t, ok, "%d", want)
		assert.Equal(t, want, slot)
	}
	_, ok = added(w, 10)
	assert.False(t, ok, "the last quarter of a tick is left to swaps")
	assert.EqualValues(t, 10<<adds+193, w.Span().Free())

	assert.Equal(t, []uint64{11 << adds}, take(w, 11, 0, 1))
	assert.True(t, asked(w), "the swap asks for the whole tick")
	_, ok = added(w, 10)
	assert.False(t, ok, "additions are of a later tick")
	slot, ok := added(w, 11)
	assert.True(t, ok)
	assert.EqualValues(t, 11<<adds+1, slot)
	take(w, 11, 0, 189)
	slot, ok = added(w, 11)
	assert.True(t, ok)
	assert.EqualValues(t, 11<<adds+191, slot, "the last before the margin")
	take(w, 11, 0, 1)
	_, ok = added(w, 11)
	assert.False(t, ok, "a swap went past the end of additions")

	small := granted(10, 12, 11)
	for range 4 {
		take(small, 10, 0, 1)
		_, open := small.Span().Adding()
		assert.False(t, open, "small ticks have no additions")
	}
}

// TestAddLate has a caller that saw additions open up to end, and adds when others have gone on.
func TestAddLate(t *testing.T) {
	const end = 10<<adds + 192
	for name, c := range map[string]struct {
		meanwhile func(*window.Ticks)
		slot      uint64 // 0: it is dropped
		used      uint64
	}{
		"at the end":          {func(w *window.Ticks) { take(w, 10, 0, 191) }, end, 11},
		"the last":            {func(w *window.Ticks) { take(w, 10, 0, 254) }, end + 63, 11},
		"the tick is used up": {func(w *window.Ticks) { take(w, 10, 0, 255) }, 0, 12},
		"the next tick":       {func(w *window.Ticks) { take(w, 11, 0, 1) }, 0, 12},
		"sealed":              {func(w *window.Ticks) { w.Seal() }, 0, 11},
		"sealed at the end":   {func(w *window.Ticks) { take(w, 10, 0, 255); w.Seal() }, 0, 11},
		"another number":      {func(w *window.Ticks) { w.Grant(window.Range{Node: 2, To: 30}, 30) }, 0, 11},
	} {
		t.Run(name, func(t *testing.T) {
			w := window.NewTicks(adds, 1<<40)
			w.Grant(window.Range{Node: 1, From: 10, To: 20}, 20)
			take(w, 10, 0, 1)
			s := w.Span()
			at, open := s.Adding()
			require.True(t, open)
			require.EqualValues(t, end, at)
			c.meanwhile(w)
			slot, ok := s.Add(end)
			assert.Equal(t, c.slot > 0, ok)
			if ok {
				assert.Equal(t, c.slot, slot)
			}
			at, open = s.Adding()
			assert.False(t, open && at == end, "additions of the tick are shut, or of a later tick")
			assert.Equal(t, c.used, w.Used())
		})
	}
}

// TestAddingFollowsSwaps guards that each kind of swap opens and shuts the additions of its tick, and
// that a late one opens none of a tick that others have left.
func TestAddingFollowsSwaps(t *testing.T) {
	w := window.NewTicks(adds, 1<<40)
	w.Grant(window.Range{Node: 1, From: 10, To: 30}, 30)
	s := w.Span()
	adding := func(tick uint64, want bool) {
		t.Helper()
		end, open := s.Adding()
		assert.Equal(t, tick<<adds+192, end)
		assert.Equal(t, want, open)
	}
	take(w, 10, 0, 191)
	adding(10, true)
	_, ok := s.TakeAt(10<<adds+191, 10<<adds+191, 1)
	assert.True(t, ok)
	adding(10, false)
	assert.EqualValues(t, 10, w.Front().Last)
	_, ok = s.TakeAt(10<<adds+192, 12<<adds+5, 1)
	assert.True(t, ok)
	adding(12, true)
	_, ok = s.TakeAt(12<<adds+6, 12<<adds+255, 1)
	assert.True(t, ok)
	adding(12, false)
	_, ok = s.Add(12<<adds + 192) // as a caller that was held up
	assert.False(t, ok)
	front := w.Front()
	assert.EqualValues(t, 13<<adds+1, front.Slot)
	assert.EqualValues(t, 12, front.Last, "a dropped slot was not taken")
	_, ok = s.TakeAt(front.Slot, front.Slot, 255)
	assert.True(t, ok)
	adding(13, false)
	assert.EqualValues(t, 13, w.Front().Last)
	take(w, 14, 0, 1)
	_, ok = s.TakeAt(14<<adds, 14<<adds, 1)
	assert.False(t, ok, "it was taken")
	_, ok = s.TakeAt(14<<adds, 15<<adds, 1)
	assert.False(t, ok)
	adding(14, true)
}

func TestTakeDrawsTheStart(t *testing.T) {
	seen := map[uint64]bool{}
	w := granted(0, 1<<30, 1<<30)
	for tick := range uint64(200) {
		slot, _, ok := w.Span().Take(tick, 0, 4, 4) // so that the next tick is the next slot too
		require.True(t, ok)
		assert.Equal(t, tick, slot>>bits)
		seen[slot&3] = true
	}
	assert.Len(t, seen, 4)
}

func TestNothingIsGrantedAtFirst(t *testing.T) {
	w := window.NewTicks(bits, 1<<40)
	assert.Empty(t, take(w, 0, 0, 1))
	assert.Empty(t, take(w, 1<<39, 0, 1))
	assert.True(t, asked(w))
	assert.False(t, window.Range{To: 5}.Extends(window.Range{}), "there is nothing to extend")
}

// TestSkip guards that a clock that goes back before the first ID does not reach ticks
// before the issuer's start, and that Skip moves nothing back.
func TestSkip(t *testing.T) {
	w := granted(10, 20, 20)
	w.Skip(15)
	front := w.Front()
	assert.True(t, front.Fresh)
	assert.EqualValues(t, 15<<bits, front.Slot)
	w.Skip(12)
	assert.Empty(t, take(w, 12, 0, 1))
	assert.Equal(t, []uint64{60}, take(w, 15, 0, 1))
	w.Skip(15)
	assert.Equal(t, []uint64{61}, take(w, 15, 0, 1))
	w.Skip(18)
	assert.False(t, w.Front().Fresh)
	assert.Equal(t, []uint64{72}, take(w, 18, 0, 1))
}

// TestShare guards that two windows of one word give no slot twice, and that each is sealed alone.
func TestShare(t *testing.T) {
	w := granted(10, 20, 20)
	a, b := w.Share(), w.Share()
	assert.Equal(t, []uint64{40}, take(a, 10, 0, 1))
	assert.Equal(t, []uint64{41}, take(b, 10, 0, 1))
	changed := a.Changed()
	end, first := a.Seal()
	assert.True(t, first && closed(changed))
	assert.EqualValues(t, 11, end)
	end, first = a.Seal()
	assert.False(t, first)
	assert.EqualValues(t, 11, end)
	assert.Empty(t, take(a, 10, 0, 1))
	assert.True(t, a.Front().Sealed)
	assert.Equal(t, []uint64{42}, take(b, 10, 0, 1))
	assert.Empty(t, take(b, 20, 0, 1), "the grant has ended, and nobody is asked")
}

func TestFront(t *testing.T) {
	w := granted(10, 20, 20)
	f := w.Front()
	assert.Equal(t, window.Front{Node: 1, Slot: 40, Limit: 80, Fresh: true}, plain(f))
	take(w, 10, 0, 1)
	f = w.Front()
	assert.Equal(t, window.Front{Node: 1, Slot: 41, Limit: 80}, plain(f))
	take(w, 10, 0, 3)
	assert.EqualValues(t, 10, w.Front().Last, "the next slot is of another tick")
	w.Seal()
	assert.Equal(t, window.Front{Node: 1, Slot: 44, Limit: 80, Sealed: true}, plain(w.Front()))
}

// plain is f without what only the window sees.
func plain(f window.Front) window.Front {
	return window.Front{Node: f.Node, Slot: f.Slot, Limit: f.Limit, Fresh: f.Fresh && !f.Sealed, Sealed: f.Sealed}
}

func TestTakeAt(t *testing.T) {
	w := granted(10, 20, 12)
	f := w.Front()
	end, ok := f.Span.TakeAt(f.Slot, f.Slot, 9)
	assert.True(t, ok)
	assert.Equal(t, []uint64{40, 44}, []uint64{f.Slot, end})
	_, ok = f.Span.TakeAt(f.Slot, f.Slot, 1)
	assert.False(t, ok, "it was taken")
	assert.False(t, asked(w))
	for tick := uint64(11); tick < 20; tick++ {
		f = w.Front()
		_, ok = f.Span.TakeAt(f.Slot, f.Slot, 4)
		assert.True(t, ok)
	}
	assert.True(t, asked(w), "beyond the soft limit")
	f = w.Front()
	_, ok = f.Span.TakeAt(f.Slot, f.Slot, 1)
	assert.False(t, ok, "beyond the limit")
}

// TestMore guards that the keeper hears of the soft limit once per grant, and of each
// call that finds nothing granted.
func TestMore(t *testing.T) {
	w := granted(10, 20, 15)
	for tick := uint64(10); tick < 20; tick++ {
		for i := range 4 {
			require.Len(t, take(w, tick, 0, 1), 1)
			assert.Equal(t, tick == 15 && i == 0, asked(w), "tick %d", tick)
		}
	}
	take(w, 20, 0, 1)
	assert.True(t, asked(w))
	w.Grant(window.Range{Node: 1, From: 20, To: 30}, 25)
	take(w, 24, 0, 1)
	assert.False(t, asked(w))
	take(w, 25, 0, 1)
	assert.True(t, asked(w))
	for _, tick := range []uint64{50, 40, 0} { // the latest that a call wants, as long as it does
		w.Want(tick)
		assert.EqualValues(t, 50, w.Wanted())
		w.Unwant(tick % 50)
	}
	w.Unwant(50)
	assert.Zero(t, w.Wanted())
}

func TestGrant(t *testing.T) {
	for name, c := range map[string]struct {
		next        window.Range
		node, first uint64 // at tick 12, after slots of tick 10 were taken
		fresh       bool
	}{
		"extends":                  {window.Range{Node: 1, From: 20, To: 30}, 1, 48, false},
		"overlaps":                 {window.Range{Node: 1, From: 10, To: 30}, 1, 48, false},
		"another number":           {window.Range{Node: 2, From: 0, To: 30}, 2, 48, false},
		"another number next":      {window.Range{Node: 2, From: 11, To: 30}, 2, 48, false},
		"another number later":     {window.Range{Node: 2, From: 14, To: 30}, 2, 56, true},
		"same number with a gap":   {window.Range{Node: 1, From: 25, To: 30}, 1, 100, true},
		"beyond the end of time":   {window.Range{Node: 2, From: 0, To: math.MaxUint64}, 2, 48, false},
		"ends where another began": {window.Range{Node: 2, From: 12, To: 13}, 2, 48, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := granted(10, 20, 20)
			take(w, 10, 0, 2)
			changed := w.Changed()
			w.Grant(c.next, c.next.To)
			assert.True(t, closed(changed))
			assert.Equal(t, c.fresh, w.Front().Fresh)
			s := w.Span()
			slot, _, ok := s.Take(12, 100, 0, 1)
			require.True(t, ok)
			assert.EqualValues(t, c.node, s.Node())
			assert.Equal(t, c.first, slot)
			limit := min(c.next.To, 1<<40)
			_, _, ok = w.Span().Take(limit, 0, 0, 1)
			assert.False(t, ok, "the limit is exclusive")
			assert.NotEmpty(t, take(w, limit-1, 0, 1))
		})
	}
}

// TestLimitIsNotLowered guards that a grant that ends earlier, or begins behind the end of time,
// takes nothing back.
func TestLimitIsNotLowered(t *testing.T) {
	w := granted(10, 20, 20)
	w.Grant(window.Range{Node: 1, From: 10, To: 15}, 12)
	assert.NotEmpty(t, take(w, 19, 0, 1))
	assert.False(t, asked(w), "nor is the soft limit lowered")

	w = granted(10, math.MaxUint64, math.MaxUint64)
	w.Grant(window.Range{Node: 1, From: math.MaxUint64 - 1, To: math.MaxUint64}, math.MaxUint64)
	assert.NotEmpty(t, take(w, 19, 0, 1))
}

func TestRevoke(t *testing.T) {
	for to, revoke := range map[uint64]func(*window.Ticks){
		20: (*window.Ticks).Revoke, math.MaxUint64: (*window.Ticks).Revoke, 21: func(w *window.Ticks) { w.Span().Abandon() },
	} {
		w := granted(10, to, to)
		s := w.Span()
		s.Take(10, 0, 0, 1)
		assert.Equal(t, []bool{true, false}, []bool{s.Passed(40), s.Passed(41)})
		changed := w.Changed()
		revoke(w)
		assert.True(t, closed(changed))
		assert.True(t, s.Passed(math.MaxUint64>>1), "a block of a stream ends")
		assert.Empty(t, take(w, 12, 100, 1))
		assert.True(t, asked(w))
		w.Grant(window.Range{Node: 1, From: 10, To: to}, to)
		assert.Equal(t, []uint64{44}, take(w, 11, 0, 1), "slots that were taken stay taken")
	}
}

func TestFail(t *testing.T) {
	w := granted(10, 20, 20)
	require.NoError(t, w.Err())
	changed, away := w.Changed(), errors.New("store is away")
	w.Fail(away)
	assert.True(t, closed(changed))
	assert.ErrorIs(t, w.Err(), away)
	w.Fail(nil)
	assert.NoError(t, w.Err())
}

func TestSeal(t *testing.T) {
	w := granted(10, 20, 20)
	take(w, 12, 0, 2)
	changed := w.Changed()
	end, first := w.Seal()
	assert.True(t, first)
	assert.EqualValues(t, 13, end)
	assert.True(t, closed(changed))
	end, first = w.Seal()
	assert.False(t, first)
	assert.EqualValues(t, 13, end)
	w.Grant(window.Range{Node: 2, From: 15, To: 30}, 30)
	w.Grant(window.Range{Node: 1, From: 20, To: 30}, 30)
	assert.EqualValues(t, 20<<bits, w.Front().Limit)
	w.Revoke()
	w.Skip(16)
	assert.Empty(t, take(w, 15, 100, 1))
	assert.EqualValues(t, 13, w.Used())
	assert.True(t, w.Front().Sealed)
}

// TestSealUnused guards that a window of which no slot was taken ends where its grant
// begins: below it another process may be stamping.
func TestSealUnused(t *testing.T) {
	end, _ := granted(10, 20, 20).Seal()
	assert.EqualValues(t, 10, end)
}

// TestAllBits guards a layout whose slots take all 63 bits: the slot after the last must not look sealed,
// and there is room for 1<<22 additions more before a sealed word overflows.
func TestAllBits(t *testing.T) {
	const end uint64 = 1<<51 - 1<<(22-12)
	w := window.NewTicks(12, 1<<51)
	w.Grant(window.Range{To: math.MaxUint64}, math.MaxUint64)
	assert.Len(t, take(w, end-1, 0, 4096), 4096)
	assert.Empty(t, take(w, end-1, 1, 1))
	front := w.Front()
	assert.False(t, front.Sealed)
	assert.Equal(t, end<<12, front.Slot)
}

func TestTakeDoesNotAllocate(t *testing.T) {
	w := granted(0, math.MaxUint64, math.MaxUint64)
	tick := uint64(0)
	assert.Zero(t, testing.AllocsPerRun(1_000, func() {
		tick++
		w.Span().Take(tick, 0, 0, 1)
	}))
}

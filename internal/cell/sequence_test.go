package cell

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/stores"
)

// base is a sequence of 100 numbers, from 10 on by 5, of which 40 are granted.
func base() Sequence {
	return Sequence{
		Format: Format, ID: "a", Creation: 2, Mode: "segmented", Start: 10, Stride: 5, Offset: 0, Max: 509, MinStep: 10, MaxStep: 20,
		Next: 40, From: 30, Most: 40, Writes: 4, Write: "w4",
	}
}

func with(change func(*Sequence)) Sequence {
	s := base()
	change(&s)
	return s
}

func TestSequence(t *testing.T) {
	want := with(func(r *Sequence) {
		r.Created, r.Last = [3]int64{1, 2, 3}, []string{"w3", "w2"}
		r.Lost, r.Deleted = true, true
	})
	got, err := DecodeSequence(want.Encode())
	require.NoError(t, err)
	assert.Equal(t, want, got)
	older := with(func(r *Sequence) { r.Max, r.Created[0], r.Stride = math.MaxInt64, math.MaxInt64, 1 })
	got, err = DecodeSequence(older.Encode())
	require.NoError(t, err)
	assert.Equal(t, []int64{10 + MaxIndex - 1, 10 + MaxIndex - 1}, []int64{got.Max, got.Created[0]}, "no maximum, as it was written before")
	longest := Sequence{ID: strings.Repeat("x", 24), Creation: 1 << 63, Mode: "segmented", Start: 1 << 62, Stride: 1 << 62, Offset: 1 << 62, Max: 1 << 62,
		MinStep: 1 << 62, MaxStep: 1 << 62, Created: [3]int64{1 << 62, 1 << 62, 1 << 62}, Next: 1 << 63, From: 1 << 63, Most: 1 << 63,
		Before: 1 << 63, Writes: 1 << 63, Write: strings.Repeat("x", 24), Last: slices.Repeat([]string{strings.Repeat("x", 24)}, Kept), Lost: true, Deleted: true,
		Move: &Move{Export: strings.Repeat("x", 24), To: strings.Repeat("/", MaxTo), Import: Digest("")}}
	assert.NoError(t, stores.CheckValue(longest.Encode()))
}

// TestSequenceAtItsBounds: the least and the largest values that a cell can have.
func TestSequenceAtItsBounds(t *testing.T) {
	for i, change := range []func(*Sequence){
		func(r *Sequence) { r.Creation, r.Writes, r.Before = 1, 1, 1<<63 },
		func(r *Sequence) { r.Creation, r.Writes = 1<<63, 1<<63 },
		func(r *Sequence) { r.Start, r.Max, r.Stride, r.Offset = 0, 0, 1, 0 },
		func(r *Sequence) { r.Start, r.Max, r.Stride, r.Offset = 3, 7, 5, 4 },
		func(r *Sequence) { r.MinStep, r.MaxStep = 1, 1 },
		func(r *Sequence) { r.From, r.Next, r.Most = MaxIndex, MaxIndex, MaxIndex },
	} {
		want := with(change)
		got, err := DecodeSequence(want.Encode())
		require.NoError(t, err, i)
		assert.Equal(t, want, got)
	}
}

// TestEdited edits a cell by hand.
func TestEditedSequence(t *testing.T) {
	tests := []struct{ from, to, want string }{
		{`{`, ``, "no JSON object"},
		{`"format":1`, `"format":2`, "format is 2"},
		{`"id":"a"`, `"id":""`, "no id"},
		{`"creation":2`, `"creation":0`, "none of creations"},
		{`"write":"w4"`, `"write":""`, "no name of its write"},
		{`"write":"w4"`, `"write":"w4","last":["1","2","3","4","5","6","7","8","9"]`, "names of 9 writes before its own, and a cell keeps 8"},
		{`"writes":4`, `"writes":0`, "no count"},
		{`"writes":4`, `"writes":9223372036854775809`, "counts 9223372036854775809 writes"},
		{`"creation":2`, `"creation":9223372036854775809`, "and 9223372036854775809 creations"},
		{`"mode":"segmented"`, `"mode":""`, "no mode"},
		{`"stride":5`, `"stride":0`, "stride is 0"},
		{`"offset":0`, `"offset":5`, "stride is 5 with the offset 5"},
		{`"offset":0`, `"offset":-1`, "offset -1"},
		{`"start":10`, `"start":-1`, "starts at -1"},
		{`"max":509`, `"max":9`, "starts at 10, and its maximum is 9"},
		{`"offset":0,"max":509`, `"offset":4,"max":13`, "starts at 10, and its maximum is 13"},
		{`"offset":0,"max":509`, `"offset":1,"max":-9223372036854775808`, "its maximum is -9223372036854775808"},
		{`"min_step":10`, `"min_step":0`, "steps are 0 to 20"},
		{`"max_step":20`, `"max_step":9`, "steps are 10 to 9"},
		{`"next":40`, `"next":29`, "next index is 29, the last write began at 30"},
		{`"most":40`, `"most":39`, "next index is 40, the last write began at 30, and the most is 39"},
		{`"most":40`, `"most":9223372036854775808`, "the most is 9223372036854775808"},
		{`"writes":4`, `"before":9223372036854775809,"writes":4`, "numbers up to 9223372036854775809 were granted before"},
		{`"next":40`, `"next":-1`, "no JSON object"},
		{`"next":40`, `"next":40,"extra":1`, "extra"},
		{`}`, `}}`, "more text"},
	}
	text := string(base().Encode())
	for _, tt := range tests {
		_, err := DecodeSequence([]byte(strings.Replace(text, tt.from, tt.to, 1)))
		assert.ErrorIs(t, err, stores.ErrDamaged, "%s → %s", tt.from, tt.to)
		assert.ErrorContains(t, err, tt.want)
	}
}

func TestLeft(t *testing.T) {
	r := base()
	assert.EqualValues(t, 100, r.Indexes())
	assert.Zero(t, Sequence{}.Left())
	assert.EqualValues(t, 60, r.Left())
	assert.EqualValues(t, 505, r.Number(99))
	assert.EqualValues(t, 205, r.LastNumber())
	r.Max = 514 // the stride skips it
	assert.EqualValues(t, 101, r.Indexes())
	r.Max = 515
	assert.EqualValues(t, 102, r.Indexes())
	r.Max, r.Next = 300, 90
	assert.Zero(t, r.Left())
	r = Sequence{Stride: 1, Max: 1<<63 - 1}
	assert.EqualValues(t, uint64(1)<<62-1, r.Indexes(), "a window has no more")
	assert.Zero(t, Sequence{}.Indexes())
}

// TestNumbers: the numbers of a sequence with an offset, from 13 on by 5.
func TestNumbers(t *testing.T) {
	r := with(func(r *Sequence) { r.Offset, r.Max = 3, 23 })
	assert.EqualValues(t, 3, r.Indexes())
	assert.EqualValues(t, 208, r.LastNumber())
	for number, index := range map[uint64]uint64{0: 0, 13: 0, 14: 1, 18: 1, 19: 2} {
		assert.Equal(t, index, r.Index(number), number)
	}
	assert.EqualValues(t, 209, r.Granted())
	r.Before = 300
	assert.EqualValues(t, 300, r.Granted())
	r.Most = 0
	assert.EqualValues(t, 300, r.Granted())
	r.Before = 0
	assert.Zero(t, r.Granted())
}

func FuzzDecodeSequence(f *testing.F) {
	f.Add(base().Encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := DecodeSequence(value)
		if err != nil {
			assert.ErrorIs(t, err, stores.ErrDamaged)
			return
		}
		again, err := DecodeSequence(r.Encode())
		assert.NoError(t, err)
		assert.Equal(t, r, again)
		assert.LessOrEqual(t, r.Left(), r.Indexes())
	})
}

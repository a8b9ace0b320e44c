package generator_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/generator"
)

func TestBSON(t *testing.T) {
	for _, id := range []generator.ID{0, 1, 1541815603606036480, math.MaxInt64} {
		typ, data, err := id.MarshalBSONValue()
		require.NoError(t, err)
		assert.Equal(t, byte(0x12), typ)
		assert.Equal(t, uint64(id), binary.LittleEndian.Uint64(data))
		got := generator.ID(-1)
		require.NoError(t, got.UnmarshalBSONValue(typ, data))
		assert.Equal(t, id, got)
	}
	_, _, err := generator.ID(-1).MarshalBSONValue()
	assert.ErrorIs(t, err, generator.ErrIDRange)

	got := generator.ID(-1)
	require.NoError(t, got.UnmarshalBSONValue(0x10, []byte{1, 2, 0, 0}))
	assert.Equal(t, generator.ID(513), got)
}

func TestBSONRefuses(t *testing.T) {
	ones := []byte{255, 255, 255, 255, 255, 255, 255, 255}
	for _, test := range []struct {
		typ  byte
		data []byte
		is   error
		text string
	}{
		{0x12, ones, generator.ErrIDRange, `BSON ID "-1": is negative`},
		{0x10, ones[:4], generator.ErrIDRange, `BSON ID "-1": is negative`},
		{0x12, ones[:7], generator.ErrIDLength, "length 7, want 8"},
		{0x10, ones, generator.ErrIDLength, "length 8, want 4"},
		{0x0a, nil, generator.ErrIDType, "*ID"},
		{0x08, []byte{1}, generator.ErrIDType, "type 0x08"}, // a bool
		{0x01, ones, generator.ErrIDType, "type 0x01"},      // a double, which rounds
	} {
		id := generator.ID(5)
		err := id.UnmarshalBSONValue(test.typ, test.data)
		var parse *generator.ParseError
		require.ErrorAs(t, err, &parse)
		assert.Equal(t, "BSON", parse.Form)
		assert.ErrorIs(t, err, test.is)
		assert.ErrorContains(t, err, test.text)
		assert.Equal(t, generator.ID(5), id, "it is left as it was")
	}
}

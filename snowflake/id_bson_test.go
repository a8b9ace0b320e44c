package snowflake_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/snowflake"
)

func TestBSON(t *testing.T) {
	for _, id := range []snowflake.ID{0, 1, 1541815603606036480, math.MaxInt64} {
		typ, data, err := id.MarshalBSONValue()
		require.NoError(t, err)
		assert.Equal(t, byte(0x12), typ)
		assert.Equal(t, uint64(id), binary.LittleEndian.Uint64(data))
		got := snowflake.ID(-1)
		require.NoError(t, got.UnmarshalBSONValue(typ, data))
		assert.Equal(t, id, got)
	}
	_, _, err := snowflake.ID(-1).MarshalBSONValue()
	assert.ErrorIs(t, err, snowflake.ErrRange)

	got := snowflake.ID(-1)
	require.NoError(t, got.UnmarshalBSONValue(0x10, []byte{1, 2, 0, 0}))
	assert.Equal(t, snowflake.ID(513), got)
}

func TestBSONRefuses(t *testing.T) {
	ones := []byte{255, 255, 255, 255, 255, 255, 255, 255}
	for _, test := range []struct {
		typ  byte
		data []byte
		is   error
		text string
	}{
		{0x12, ones, snowflake.ErrRange, `BSON ID "-1": out of range: is negative`},
		{0x10, ones[:4], snowflake.ErrRange, `BSON ID "-1": out of range: is negative`},
		{0x12, ones[:7], snowflake.ErrLength, "length 7, want 8"},
		{0x10, ones, snowflake.ErrLength, "length 8, want 4"},
		{0x0a, nil, snowflake.ErrType, "*ID"},
		{0x08, []byte{1}, snowflake.ErrType, "type 0x08"}, // a bool
		{0x01, ones, snowflake.ErrType, "type 0x01"},      // a double, which rounds
	} {
		id := snowflake.ID(5)
		err := id.UnmarshalBSONValue(test.typ, test.data)
		assert.ErrorContains(t, err, "BSON ID")
		assert.ErrorIs(t, err, test.is)
		assert.ErrorContains(t, err, test.text)
		assert.Equal(t, snowflake.ID(5), id, "it is left as it was")
	}
}

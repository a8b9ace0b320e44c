package databases_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/tickflake/tickflake/examples/databases/mongodb"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/snowflake"
)

// Debian has no MongoDB, so this tests the bytes that the driver would send: an ID is a 64-bit integer,
// small or large, and nothing else is read as one.
func TestMongoDB(t *testing.T) {
	first, err := exampletest.IDs(t).Next()
	require.NoError(t, err)
	for id, replaces := range map[snowflake.ID]*snowflake.ID{first: nil, 0: &first, 1 << 31: nil, math.MaxInt64: &first} {
		order := mongodb.Order{ID: id, Customer: "ada", Replaces: replaces}
		data, err := bson.Marshal(order)
		require.NoError(t, err)
		assert.Equal(t, id.Int64(), bson.Raw(data).Lookup("_id").Int64())
		_, err = bson.Raw(data).LookupErr("replaces")
		assert.Equal(t, replaces == nil, err != nil)
		var got mongodb.Order
		require.NoError(t, bson.Unmarshal(data, &got))
		assert.Equal(t, order, got)
	}
	_, err = bson.Marshal(mongodb.Order{ID: -1})
	assert.ErrorIs(t, err, snowflake.ErrRange)
	for _, value := range []any{int64(-1), 1541815603606036480.0, true, nil, "1541815603606036480"} {
		data, err := bson.Marshal(bson.M{"_id": value})
		require.NoError(t, err)
		assert.Error(t, bson.Unmarshal(data, &mongodb.Order{}), "%v", value)
	}

	// Integers, because MongoDB does not compare an integer with a string.
	filter, err := mongodb.Between(snowflake.Default(), exampletest.Day, exampletest.Day.AddDate(0, 0, 1))
	require.NoError(t, err)
	data, err := bson.Marshal(filter)
	require.NoError(t, err)
	inside, _ := exampletest.Around(t, exampletest.Day)
	assert.Equal(t, inside[0].Int64(), bson.Raw(data).Lookup("_id", "$gte").Int64())
	assert.Equal(t, inside[1].Int64(), bson.Raw(data).Lookup("_id", "$lte").Int64())
}

package mongodb_test

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

// Debian has no MongoDB, so this tests the bytes that the driver would send.
func TestRoundTrip(t *testing.T) {
	first, err := exampletest.IDs(t).Next()
	require.NoError(t, err)
	for _, id := range []snowflake.ID{first, 0, 1, 1 << 31, math.MaxInt64} {
		for _, replaces := range []*snowflake.ID{nil, &first} {
			order := mongodb.Order{ID: id, Customer: "ada", Replaces: replaces}
			data, err := bson.Marshal(order)
			require.NoError(t, err)
			value := bson.Raw(data).Lookup("_id")
			assert.Equal(t, bson.TypeInt64, value.Type, "small or large")
			assert.Equal(t, id.Int64(), value.Int64())
			_, err = bson.Raw(data).LookupErr("replaces")
			assert.Equal(t, replaces == nil, err != nil)

			var got mongodb.Order
			require.NoError(t, bson.Unmarshal(data, &got))
			assert.Equal(t, order, got)
		}
	}
	var got mongodb.Order
	require.NoError(t, bson.UnmarshalExtJSON([]byte(`{"_id": {"$numberLong": "1541815603606036480"}}`), true, &got))
	assert.Equal(t, snowflake.ID(1541815603606036480), got.ID)
	assert.Error(t, bson.UnmarshalExtJSON([]byte(`{"_id": "1541815603606036480"}`), true, &got), "a string is no ID")
}

// Values that are not IDs are refused in both directions: no value is stored that cannot be
// read back, and no rounded number or default is read as an ID.
func TestRefuses(t *testing.T) {
	_, err := bson.Marshal(mongodb.Order{ID: -1})
	assert.ErrorIs(t, err, snowflake.ErrRange)
	for _, value := range []any{int64(-1), 1541815603606036480.0, true, nil, "1541815603606036480"} {
		data, err := bson.Marshal(bson.M{"_id": value})
		require.NoError(t, err)
		var got mongodb.Order
		assert.Error(t, bson.Unmarshal(data, &got), "%v", value)
	}
}

func TestBetween(t *testing.T) {
	filter, err := mongodb.Between(snowflake.Default(), exampletest.Day, exampletest.Day.AddDate(0, 0, 1))
	require.NoError(t, err)
	data, err := bson.Marshal(filter)
	require.NoError(t, err)
	lo, hi := bson.Raw(data).Lookup("_id", "$gte"), bson.Raw(data).Lookup("_id", "$lte")
	// Integers, because MongoDB does not compare an integer with a string.
	require.Equal(t, bson.TypeInt64, lo.Type)
	require.Equal(t, bson.TypeInt64, hi.Type)
	inside, outside := exampletest.Around(t, exampletest.Day)
	for _, id := range inside {
		assert.True(t, lo.Int64() <= id.Int64() && id.Int64() <= hi.Int64(), "%v", id)
	}
	for _, id := range outside {
		assert.False(t, lo.Int64() <= id.Int64() && id.Int64() <= hi.Int64(), "%v", id)
	}
	_, err = mongodb.Between(snowflake.Default(), exampletest.Day, exampletest.Day)
	assert.Error(t, err)
}

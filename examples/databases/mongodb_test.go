package databases_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/tickflake/tickflake/examples/databases/mongodb"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/snowflake"
)

// Debian has no MongoDB, so this tests the bytes that the driver would send: an ID is a 64-bit integer.
func TestMongoDB(t *testing.T) {
	first, err := exampletest.IDs(t).Next()
	require.NoError(t, err)
	order := mongodb.Order{ID: first, Customer: "ada", Replaces: &first}
	data, err := bson.Marshal(order)
	require.NoError(t, err)
	assert.Equal(t, first.Int64(), bson.Raw(data).Lookup("_id").Int64())
	var got mongodb.Order
	require.NoError(t, bson.Unmarshal(data, &got))
	assert.Equal(t, order, got)

	// Integers, because MongoDB does not compare an integer with a string.
	filter, err := mongodb.Between(snowflake.Default(), exampletest.Day, exampletest.Day.AddDate(0, 0, 1))
	require.NoError(t, err)
	data, err = bson.Marshal(filter)
	require.NoError(t, err)
	inside, _ := exampletest.Around(t, exampletest.Day)
	assert.Equal(t, inside[0].Int64(), bson.Raw(data).Lookup("_id", "$gte").Int64())
	assert.Equal(t, inside[1].Int64(), bson.Raw(data).Lookup("_id", "$lte").Int64())
}

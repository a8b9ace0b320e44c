// Package mongodb shows orders as MongoDB keeps them: an ID of tickflake is a 64-bit
// integer in BSON, without more ado.
package mongodb

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/tickflake/tickflake/snowflake"
)

// Order is a document. Its ID must be set before it is inserted: there is no omitempty, with
// which the driver would make up an ObjectID for an order that has none.
type Order struct {
	ID       snowflake.ID  `bson:"_id"`
	Customer string        `bson:"customer"`
	Replaces *snowflake.ID `bson:"replaces,omitempty"`
}

// Between returns the filter for documents that were made from one instant up to, not
// including, another.
func Between(layout snowflake.Layout, from, to time.Time) (bson.D, error) {
	lo, hi, err := layout.Between(from, to)
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: lo}, {Key: "$lte", Value: hi}}}}, nil
}

// Package mongodb stores orders in MongoDB. An ID of tickflake is a 64-bit integer in BSON.
package mongodb

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/tickflake/tickflake/snowflake"
)

// Order is a document. Set its ID before you insert it. The tag has no omitempty: with it the
// driver would make an ObjectID for an order whose ID is 0.
type Order struct {
	ID       snowflake.ID  `bson:"_id"`
	Customer string        `bson:"customer"`
	Replaces *snowflake.ID `bson:"replaces,omitempty"`
}

// Between returns the filter for documents that were issued in [from, to).
func Between(layout snowflake.Layout, from, to time.Time) (bson.D, error) {
	lo, hi, err := layout.Between(from, to)
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: lo}, {Key: "$lte", Value: hi}}}}, nil
}

// Package gormid stores orders with GORM, which takes their primary keys from tickflake.
package gormid

import (
	"gorm.io/gorm"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// IDs issues the primary keys. Set it before the first row is created.
var IDs *generator.Generator

// Key is the primary key of a model that embeds it. A row whose ID is set keeps it, so a transaction that is tried
// again with the same struct makes the same row. Without autoIncrement:false GORM creates a column that counts.
type Key struct {
	ID snowflake.ID `gorm:"primaryKey;autoIncrement:false"`
}

// BeforeCreate is the hook that GORM calls for each row, also in a batch and for associations, but not for a map. It is
// within the transaction, which is open while the generator waits: bound that by the context.
func (k *Key) BeforeCreate(tx *gorm.DB) (err error) {
	if k.ID == 0 {
		k.ID, err = IDs.NextContext(tx.Statement.Context)
	}
	return err
}

// Order is a model.
type Order struct {
	Key
	Customer string
	Replaces *snowflake.ID
	Lines    []Line
}

// Line is a line of an order.
type Line struct {
	Key
	OrderID snowflake.ID
	Article string
}

package gormid

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Order is a model: its own primary key and those of its lines are set on Create.
type Order struct {
	ID       snowflake.ID `gorm:"primaryKey;autoIncrement:false"`
	Customer string
	Replaces *snowflake.ID
	Lines    []Line
}

// Line is a line of an order.
type Line struct {
	ID      snowflake.ID `gorm:"primaryKey;autoIncrement:false"`
	OrderID snowflake.ID
	Article string
}

// Open opens a database whose rows get their primary keys from a generator.
func Open(dialect gorm.Dialector, gen *generator.Generator, opts ...gorm.Option) (*gorm.DB, error) {
	db, err := gorm.Open(dialect, opts...)
	if err != nil {
		return nil, err
	}
	return db, db.Use(New(gen))
}

// Between returns the orders that were issued in [from, to), in order of time.
func Between(ctx context.Context, db *gorm.DB, layout snowflake.Layout, from, to time.Time) ([]Order, error) {
	lo, hi, err := layout.Between(from, to)
	if err != nil {
		return nil, err
	}
	return gorm.G[Order](db).Where("id BETWEEN ? AND ?", lo, hi).Order("id").Find(ctx)
}

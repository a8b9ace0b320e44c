// Package schema is what ent generates package orderdb from.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/tickflake/tickflake/examples/databases/ent/entid"
)

// Order is an entity whose ID is made by tickflake. It may replace another.
type Order struct{ ent.Schema }

// Mixin returns those that the entity is made of.
func (Order) Mixin() []ent.Mixin { return []ent.Mixin{entid.Mixin{}} }

// Fields returns those that it has besides.
func (Order) Fields() []ent.Field { return []ent.Field{field.String("customer")} }

// Edges returns those to the order that it replaces, and back.
func (Order) Edges() []ent.Edge {
	return []ent.Edge{edge.To("replaced_by", Order.Type).Unique().From("replaces").Unique()}
}

// Package schema is the schema from which ent generates the package orderdb.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/tickflake/tickflake/examples/databases/ent/entid"
)

// Order is an entity with an ID of tickflake. It may replace another order.
type Order struct{ ent.Schema }

// Mixin returns the mixins of the entity.
func (Order) Mixin() []ent.Mixin { return []ent.Mixin{entid.Mixin{}} }

// Fields returns the other fields.
func (Order) Fields() []ent.Field { return []ent.Field{field.String("customer")} }

// Edges returns the edge to the order that it replaces, and its inverse.
func (Order) Edges() []ent.Edge {
	return []ent.Edge{edge.To("replaced_by", Order.Type).Unique().From("replaces").Unique()}
}

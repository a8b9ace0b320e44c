// Package entid sets the IDs of ent's entities: use [Mixin] in the schema, and [Hook] on the
// client.
package entid

import (
	"context"

	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/mixin"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Mixin declares the field "id" of an entity: a [snowflake.ID] in a column of type bigint.
//
// The field is declared by field.Other and not by field.Int64 with a GoType. With that,
// CreateBulk of ent 0.14 returns entities with wrong IDs on MySQL, counted up from 0, and
// fails on PostgreSQL.
type Mixin struct{ mixin.Schema }

// Fields returns the field.
func (Mixin) Fields() []ent.Field {
	return []ent.Field{
		field.Other("id", snowflake.ID(0)).Immutable().
			SchemaType(map[string]string{dialect.Postgres: "bigint", dialect.MySQL: "bigint"}),
	}
}

// Hook sets the ID of each entity that is created without one. Pass it to the method Use of
// the generated client. Unlike a default of the field it can return the error of the
// generator; then nothing is stored.
func Hook(gen *generator.Generator) ent.Hook {
	return func(next ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
			entity, ours := m.(interface {
				ID() (snowflake.ID, bool)
				SetID(snowflake.ID)
			})
			if ours && m.Op().Is(ent.OpCreate) {
				if _, set := entity.ID(); !set {
					id, err := gen.NextContext(ctx)
					if err != nil {
						return nil, err
					}
					entity.SetID(id)
				}
			}
			return next.Mutate(ctx, m)
		})
	}
}

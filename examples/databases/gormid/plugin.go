// Package gormid gives rows that GORM creates IDs of tickflake as their primary keys.
package gormid

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Plugin is a plugin for GORM, for use with [gorm.DB.Use]. In whatever is created, also
// in batches, as an association or from a map, it sets the primary key if that is a
// [snowflake.ID] and still 0. BeforeCreate hooks see it set.
//
// The field's tag should say autoIncrement:false, or GORM makes the column one that the
// database counts up. With Select, select the primary key too: GORM leaves out of the
// statement what is not selected.
//
// After an upsert that met a row by another unique key, with clause.OnConflict, the row
// has the ID that it had, and the struct the one that was made for a new row: no row has
// that. Read the row by that key before you use its ID, and before you create what refers
// to it. With clause.Returning{}, PostgreSQL and MariaDB set the struct to the row at once,
// unless the clause says DoNothing.
type Plugin struct{ gen *generator.Generator }

// New returns a plugin that takes IDs from a generator.
func New(gen *generator.Generator) *Plugin { return &Plugin{gen} }

// Name returns the name under which GORM knows the plugin.
func (*Plugin) Name() string { return "tickflake" }

// Initialize registers the plugin's callback.
func (p *Plugin) Initialize(db *gorm.DB) error {
	// First of all, so that no transaction is open while the generator waits.
	return db.Callback().Create().Before("*").Register("tickflake:ids", p.fill)
}

// fill sets the primary keys that are missing, with one call for all of them.
func (p *Plugin) fill(db *gorm.DB) {
	s := db.Statement
	if db.Error != nil || s.Schema == nil {
		return
	}
	key := s.Schema.PrioritizedPrimaryField // nil for one of several columns
	if key == nil || key.FieldType != reflect.TypeFor[snowflake.ID]() {
		return
	}
	rows := missing(s, key)
	if len(rows) == 0 {
		return
	}
	if row := rows[0]; row.Kind() == reflect.Struct && !row.CanAddr() { // GORM would store a 0
		_ = db.AddError(fmt.Errorf("%w: Create of a %s with no ID; pass a pointer to it", gorm.ErrInvalidValue, row.Type()))
		return
	}
	ids := make([]snowflake.ID, len(rows))
	if _, err := p.gen.NextNContext(s.Context, ids); err != nil {
		_ = db.AddError(fmt.Errorf("%d IDs for %s: %w", len(ids), s.Table, err))
		return
	}
	for i, row := range rows {
		if row.Kind() == reflect.Map {
			row.SetMapIndex(reflect.ValueOf(key.DBName), reflect.ValueOf(ids[i]))
		} else if err := key.Set(s.Context, row, ids[i]); err != nil {
			_ = db.AddError(err)
		}
	}
}

// missing returns the structs and maps that are to be rows and have no primary key yet.
func missing(s *gorm.Statement, key *schema.Field) (rows []reflect.Value) {
	look := func(row reflect.Value) {
		row = reflect.Indirect(row)
		if !row.IsValid() {
			return // a nil, which GORM refuses
		}
		switch values, _ := reflect.TypeAssert[map[string]any](row); {
		case values != nil:
			_, byColumn := values[key.DBName]
			_, byName := values[key.Name]
			if !byColumn && !byName {
				rows = append(rows, row)
			}
		case row.Kind() == reflect.Struct:
			if _, zero := key.ValueOf(s.Context, row); zero {
				rows = append(rows, row)
			}
		}
	}
	switch v := s.ReflectValue; v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			look(v.Index(i))
		}
	default:
		look(v)
	}
	return rows
}

// Package gormid sets the primary keys of rows that GORM creates to IDs of tickflake.
package gormid

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

// Plugin is a plugin for GORM, for use with [gorm.DB.Use]. It sets the primary key of each
// row that is created, also in a batch, as an association or from a map, if the key is a
// [snowflake.ID] and 0. BeforeCreate hooks see the key.
//
// The field's tag needs autoIncrement:false, or GORM creates a column that counts. With
// Select, select the primary key too: GORM omits columns that are not selected.
//
// An upsert (clause.OnConflict) that finds a row by another unique key leaves the row its ID,
// while the struct has a new ID that no row has. Read the row by that key before you use its
// ID or create rows that refer to it. With clause.Returning{}, PostgreSQL and MariaDB set the
// struct from the row, unless the clause says DoNothing.
type Plugin struct{ gen *generator.Generator }

// New returns a plugin that takes IDs from a generator.
func New(gen *generator.Generator) *Plugin { return &Plugin{gen} }

// Name returns the name under which GORM knows the plugin.
func (*Plugin) Name() string { return "tickflake" }

// Initialize registers the plugin's callback.
func (p *Plugin) Initialize(db *gorm.DB) error {
	// Before GORM begins a transaction, so that none is open while the generator waits.
	return db.Callback().Create().Before("*").Register("tickflake:ids", p.fill)
}

// fill sets the missing primary keys with one call of the generator.
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

// missing returns the structs and maps that have no primary key yet.
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

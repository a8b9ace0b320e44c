package gormid_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/tickflake/tickflake/examples/databases/gormid"
	"github.com/tickflake/tickflake/examples/internal/testdb"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func TestPostgreSQL(t *testing.T) { testPlugin(t, postgres.Open(testdb.PostgreSQL(t))) }

func TestMariaDB(t *testing.T) { testPlugin(t, gormmysql.Open(testdb.MariaDB(t))) }

func testPlugin(t *testing.T, dialect gorm.Dialector) {
	gen := testdb.IDs(t)
	db, err := gormid.Open(dialect, gen, &gorm.Config{Logger: logger.Discard})
	require.NoError(t, err)
	pool, err := db.DB()
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	require.NoError(t, db.AutoMigrate(&gormid.Order{}, &gormid.Line{}, &counted{}, &pair{}))

	t.Run("columns", func(t *testing.T) { columns(t, db) })
	t.Run("create", func(t *testing.T) { create(t, db, gen) })
	t.Run("maps", func(t *testing.T) { maps(t, db) })
	t.Run("other keys are left alone", func(t *testing.T) { otherKeys(t, db) })
	t.Run("upsert", func(t *testing.T) { upsert(t, db) })
	t.Run("between", func(t *testing.T) { between(t, db) })
	t.Run("failures", func(t *testing.T) { failures(t, db) })
	t.Run("before the transaction", func(t *testing.T) {
		require.NoError(t, gen.Close())
		require.NoError(t, pool.Close())
		err := db.Create(&gormid.Order{}).Error
		assert.ErrorIs(t, err, generator.ErrClosed, "and not that the pool is closed, too")
		assert.ErrorContains(t, err, "1 IDs for orders")
	})
}

// The column of the key does not count.
func columns(t *testing.T, db *gorm.DB) {
	types, err := db.Migrator().ColumnTypes(&gormid.Order{})
	require.NoError(t, err)
	require.Equal(t, "id", types[0].Name())
	auto, _ := types[0].AutoIncrement()
	assert.False(t, auto)
	_, has := types[0].DefaultValue()
	assert.False(t, has, "such as nextval(…)")
	length, _ := types[0].ColumnType()
	assert.Contains(t, length, "bigint")
}

func create(t *testing.T, db *gorm.DB, gen *generator.Generator) {
	last, err := gen.Next()
	require.NoError(t, err)
	fresh := func(ids ...snowflake.ID) { // are they new, and in order?
		t.Helper()
		for _, id := range ids {
			require.Greater(t, id, last)
			last = id
		}
	}
	one := gormid.Order{Customer: "ada", Lines: []gormid.Line{{Article: "pen"}, {Article: "ink"}}}
	require.NoError(t, db.Create(&one).Error)
	fresh(one.ID, one.Lines[0].ID, one.Lines[1].ID)
	var got gormid.Order
	require.NoError(t, db.Preload("Lines").First(&got, one.ID).Error)
	assert.Equal(t, one, got)

	batch := []gormid.Order{{Customer: "bob"}, {ID: 7, Customer: "cyd"}, {Customer: "dan", Replaces: &one.ID}}
	require.NoError(t, db.Create(&batch).Error)
	fresh(batch[0].ID, batch[2].ID)
	assert.EqualValues(t, 7, batch[1].ID, "which was set")
	pointers := []*gormid.Order{{Customer: "eve", Lines: []gormid.Line{{Article: "cup"}}}, {Customer: "fay"}}
	require.NoError(t, db.Create(pointers).Error)
	fresh(pointers[0].ID, pointers[1].ID, pointers[0].Lines[0].ID)
	many := make([]gormid.Order, 25)
	require.NoError(t, db.CreateInBatches(many, 10).Error)
	for _, order := range many {
		fresh(order.ID)
	}
	var ids []snowflake.ID
	require.NoError(t, db.Model(&gormid.Order{}).Order("id").Pluck("id", &ids).Error)
	assert.Len(t, ids, 1+3+2+25)
	assert.Equal(t, snowflake.ID(7), ids[0])
	assert.Equal(t, last, ids[len(ids)-1])
	got = gormid.Order{}
	require.NoError(t, db.First(&got, batch[2].ID).Error)
	assert.Equal(t, &one.ID, got.Replaces)

	one.Lines = append(one.Lines, gormid.Line{Article: "nib"})
	require.NoError(t, db.Save(&one).Error)
	fresh(one.Lines[2].ID)
	found := gormid.Order{}
	require.NoError(t, db.FirstOrCreate(&found, gormid.Order{Customer: "gus"}).Error)
	fresh(found.ID)
	upsert := gormid.Order{ID: found.ID, Customer: "hal"}
	require.NoError(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&upsert).Error)
	assert.Equal(t, found.ID, upsert.ID)

	bare := db.Session(&gorm.Session{SkipDefaultTransaction: true, SkipHooks: true})
	order := gormid.Order{Customer: "ivy"}
	require.NoError(t, bare.Create(&order).Error)
	fresh(order.ID)
	err = db.Transaction(func(tx *gorm.DB) error { return tx.Create(&gormid.Line{OrderID: order.ID}).Error })
	require.NoError(t, err)
	// A transaction that is retried with the same struct has the same ID.
	order = gormid.Order{Customer: "kim"}
	require.ErrorIs(t, db.Transaction(func(tx *gorm.DB) error {
		require.NoError(t, tx.Create(&order).Error)
		return assert.AnError
	}), assert.AnError)
	before := order.ID
	require.NoError(t, db.Transaction(func(tx *gorm.DB) error { return tx.Create(&order).Error }))
	assert.Equal(t, before, order.ID)
	fresh(order.ID)
	order = gormid.Order{Customer: "jon"}
	require.NoError(t, db.Select("ID", "Customer").Create(&order).Error)
	fresh(order.ID)
}

func maps(t *testing.T, db *gorm.DB) {
	one := map[string]any{"customer": "map"}
	require.NoError(t, db.Model(&gormid.Order{}).Create(one).Error)
	several := []map[string]any{{"Customer": "map"}, {"customer": "map"}}
	require.NoError(t, db.Model(&gormid.Order{}).Create(several).Error)
	require.NoError(t, db.Model(&gormid.Order{}).Create(&map[string]any{"ID": 8, "customer": "map"}).Error)
	require.NoError(t, db.Model(&gormid.Order{}).Create(&[]map[string]any{{"id": 9, "customer": "map"}}).Error)
	var ids []snowflake.ID
	require.NoError(t, db.Model(&gormid.Order{}).Where("customer", "map").Order("id").Pluck("id", &ids).Error)
	assert.Equal(t, []snowflake.ID{8, 9, one["id"].(snowflake.ID), several[0]["id"].(snowflake.ID), several[1]["id"].(snowflake.ID)}, ids)
}

// The plugin leaves alone a key that the database counts, and a key of two columns.
type (
	counted struct{ ID int64 }
	pair    struct {
		OrderID snowflake.ID `gorm:"primaryKey;autoIncrement:false"`
		TagID   snowflake.ID `gorm:"primaryKey;autoIncrement:false"`
	}
)

func otherKeys(t *testing.T, db *gorm.DB) {
	row := counted{}
	require.NoError(t, db.Create(&row).Error)
	assert.EqualValues(t, 1, row.ID)
	p := pair{TagID: 3}
	require.NoError(t, db.Create(&p).Error)
	assert.Equal(t, pair{TagID: 3}, p)
	require.NoError(t, db.Table("counteds").Create(map[string]any{"id": 5}).Error, "without a model")
}

// tag is a row with a second unique key.
type tag struct {
	ID    snowflake.ID `gorm:"primaryKey;autoIncrement:false"`
	Name  string       `gorm:"uniqueIndex;size:50"`
	Count int
}

// An upsert that finds a row by another unique key leaves the row its ID, while the struct has
// an ID that no row has. RETURNING sets that of the row.
func upsert(t *testing.T, db *gorm.DB) {
	require.NoError(t, db.AutoMigrate(&tag{}))
	first := tag{Name: "x", Count: 1}
	require.NoError(t, db.Create(&first).Error)
	name := []clause.Column{{Name: "name"}}
	for what, conflict := range map[string]clause.OnConflict{
		"DoNothing": {Columns: name, DoNothing: true},
		"DoUpdates": {Columns: name, DoUpdates: clause.AssignmentColumns([]string{"count"})},
		"UpdateAll": {Columns: name, UpdateAll: true},
	} {
		again := tag{Name: "x", Count: 2}
		require.NoError(t, db.Clauses(conflict).Create(&again).Error, what)
		var found int64
		require.NoError(t, db.Model(&tag{}).Where("id", again.ID).Count(&found).Error)
		assert.Zero(t, found, "%s: no row has the struct's ID", what)
		var row tag
		require.NoError(t, db.First(&row, "name = ?", "x").Error)
		assert.Equal(t, first.ID, row.ID, what)
		if !conflict.DoNothing { // of which PostgreSQL returns nothing
			again = tag{Name: "x", Count: 2}
			require.NoError(t, db.Clauses(conflict, clause.Returning{}).Create(&again).Error, what)
			assert.Equal(t, first.ID, again.ID, what)
		}
	}
}

func between(t *testing.T, db *gorm.DB) {
	inside, outside := testdb.Around(t, testdb.Day)
	for _, id := range append(outside, inside...) {
		require.NoError(t, db.Create(&gormid.Order{ID: id}).Error)
	}
	got, err := gormid.Between(t.Context(), db, snowflake.Default(), testdb.Day, testdb.Day.Add(24*time.Hour))
	require.NoError(t, err)
	ids := make([]snowflake.ID, len(got))
	for i, order := range got {
		ids[i] = order.ID
	}
	assert.Equal(t, inside, ids)
}

// The plugin does not panic on values that GORM refuses.
func failures(t *testing.T, db *gorm.DB) {
	assert.ErrorContains(t, db.Create(gormid.Order{}).Error, "pass a pointer")
	assert.ErrorIs(t, db.Create([1]gormid.Order{}).Error, gorm.ErrInvalidValue)
	var zeros int64
	require.NoError(t, db.Model(&gormid.Order{}).Where("id", 0).Count(&zeros).Error)
	assert.Zero(t, zeros)
	assert.NoError(t, db.Create(gormid.Order{ID: 10}).Error)
	assert.Error(t, db.Create([]*gormid.Order{{}, nil}).Error)
	assert.Error(t, db.Create(&[]gormid.Order{}).Error)
	var none map[string]any
	assert.NotPanics(t, func() { _ = db.Model(&gormid.Order{}).Create(none) })
	err := db.Create(&gormid.Order{ID: -5}).Error
	assert.ErrorIs(t, err, snowflake.ErrRange)
}

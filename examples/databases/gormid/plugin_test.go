package gormid_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/tickflake/tickflake/examples/databases/gormid"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/generator"
	"github.com/tickflake/tickflake/snowflake"
)

func TestPostgreSQL(t *testing.T) { testPlugin(t, postgres.Open(exampletest.PostgreSQL(t))) }

func TestMariaDB(t *testing.T) { testPlugin(t, gormmysql.Open(exampletest.MariaDB(t))) }

func testPlugin(t *testing.T, dialect gorm.Dialector) {
	gen := exampletest.IDs(t)
	db, err := gormid.Open(dialect, gen, &gorm.Config{Logger: logger.Discard})
	require.NoError(t, err)
	pool, err := db.DB()
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	require.NoError(t, db.AutoMigrate(&gormid.Order{}, &gormid.Line{}, &counted{}, &pair{}))

	t.Run("columns", func(t *testing.T) { columns(t, db) })
	t.Run("create", func(t *testing.T) { create(t, db, gen) })
	t.Run("other keys are left alone", func(t *testing.T) { otherKeys(t, db) })
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
	var ids []snowflake.ID
	require.NoError(t, db.Model(&gormid.Order{}).Order("id").Pluck("id", &ids).Error)
	assert.Len(t, ids, 1+3+2)
	assert.Equal(t, snowflake.ID(7), ids[0])
	assert.Equal(t, pointers[1].ID, ids[len(ids)-1])
	got = gormid.Order{}
	require.NoError(t, db.First(&got, batch[2].ID).Error)
	assert.Equal(t, &one.ID, got.Replaces)

	row := map[string]any{"customer": "map"}
	require.NoError(t, db.Model(&gormid.Order{}).Create(row).Error)
	fresh(row["id"].(snowflake.ID))
	assert.ErrorContains(t, db.Create(gormid.Order{}).Error, "pass a pointer")
	// A transaction that is retried with the same struct has the same ID.
	order := gormid.Order{Customer: "kim"}
	require.ErrorIs(t, db.Transaction(func(tx *gorm.DB) error {
		require.NoError(t, tx.Create(&order).Error)
		return assert.AnError
	}), assert.AnError)
	before := order.ID
	require.NoError(t, db.Transaction(func(tx *gorm.DB) error { return tx.Create(&order).Error }))
	assert.Equal(t, before, order.ID)
	fresh(order.ID)
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

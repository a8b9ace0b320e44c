package databases_test

import (
	"testing"
	"time"

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

func TestGormOnPostgreSQL(t *testing.T) {
	t.Parallel()
	testPlugin(t, postgres.Open(exampletest.PostgreSQL(t)))
}

func TestGormOnMariaDB(t *testing.T) {
	t.Parallel()
	testPlugin(t, gormmysql.Open(exampletest.MariaDB(t)))
}

func testPlugin(t *testing.T, dialect gorm.Dialector) {
	gen := exampletest.IDs(t)
	db, err := gormid.Open(dialect, gen, &gorm.Config{Logger: logger.Discard})
	require.NoError(t, err)
	pool, err := db.DB()
	require.NoError(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	require.NoError(t, db.AutoMigrate(&gormid.Order{}, &gormid.Line{}, &counted{}, &pair{}))
	types, err := db.Migrator().ColumnTypes(&gormid.Order{})
	require.NoError(t, err)
	auto, _ := types[0].AutoIncrement()
	_, has := types[0].DefaultValue()
	length, _ := types[0].ColumnType()
	assert.False(t, auto || has, "the column counts")
	assert.Contains(t, length, "bigint")

	create(t, db)
	otherKeys(t, db)

	require.NoError(t, gen.Close())
	require.NoError(t, pool.Close())
	err = db.Create(&gormid.Order{}).Error
	assert.ErrorIs(t, err, generator.ErrClosed, "and not that the pool is closed, too: no transaction is open yet")
	assert.ErrorContains(t, err, "1 IDs for orders")
}

func create(t *testing.T, db *gorm.DB) {
	var last snowflake.ID
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
	batch := []gormid.Order{{Customer: "bob"}, {ID: 7, Customer: "cyd"}, {Customer: "dan", Replaces: &one.ID}}
	require.NoError(t, db.Create(&batch).Error)
	fresh(batch[0].ID, batch[2].ID)
	assert.EqualValues(t, 7, batch[1].ID, "which was set")
	pointers := []*gormid.Order{{Customer: "eve", Lines: []gormid.Line{{Article: "cup"}}}, {Customer: "fay"}}
	require.NoError(t, db.Create(pointers).Error)
	fresh(pointers[0].ID, pointers[1].ID, pointers[0].Lines[0].ID)

	layout := snowflake.Default()
	got, err := gormid.Between(t.Context(), db, layout, layout.Epoch.Add(time.Second), layout.End())
	require.NoError(t, err)
	require.Len(t, got, 5, "all but 7")
	require.NoError(t, db.Preload("Lines").First(&got[0]).Error)
	assert.Equal(t, one, got[0])
	assert.Equal(t, &one.ID, got[2].Replaces)
	assert.Equal(t, pointers[1].ID, got[4].ID)

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
	fresh(order.ID)
	require.NoError(t, db.Transaction(func(tx *gorm.DB) error { return tx.Create(&order).Error }))
	assert.Equal(t, last, order.ID)
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

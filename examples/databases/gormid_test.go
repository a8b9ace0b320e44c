package databases_test

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
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/snowflake"
)

// Each row has an ID of the generator, in their order, and is found by it.
func TestGorm(t *testing.T) {
	for _, open := range []func() gorm.Dialector{
		func() gorm.Dialector { return postgres.Open(servers.For(t, servers.PostgreSQL).URL) },
		func() gorm.Dialector { return gormmysql.Open(servers.For(t, servers.MariaDB).DSN()) },
	} {
		dialect := open()
		t.Run(dialect.Name(), func(t *testing.T) {
			gormid.IDs = exampletest.IDs(t)
			db, err := gorm.Open(dialect, &gorm.Config{Logger: logger.Discard})
			require.NoError(t, err)
			pool, err := db.DB()
			require.NoError(t, err)
			defer pool.Close()
			require.NoError(t, db.AutoMigrate(&gormid.Order{}, &gormid.Line{}))
			types, err := db.Migrator().ColumnTypes(&gormid.Order{})
			require.NoError(t, err)
			auto, _ := types[0].AutoIncrement()
			_, has := types[0].DefaultValue()
			assert.False(t, auto || has, "the column counts")

			one := gormid.Order{Customer: "ada", Lines: []gormid.Line{{Article: "pen"}, {Article: "ink"}}}
			require.NoError(t, db.Create(&one).Error)
			batch := []*gormid.Order{{Customer: "bob"}, {Key: gormid.Key{ID: 7}, Customer: "cyd"}, {Customer: "dan", Replaces: &one.ID}}
			require.NoError(t, db.Create(batch).Error)
			again := gormid.Order{Customer: "kim"}
			require.ErrorIs(t, db.Transaction(func(tx *gorm.DB) error {
				require.NoError(t, tx.Create(&again).Error)
				return assert.AnError
			}), assert.AnError)
			was := again.ID
			require.NoError(t, db.Create(&again).Error)
			assert.Equal(t, was, again.ID)
			ids := []snowflake.ID{7, one.ID, one.Lines[0].ID, one.Lines[1].ID, batch[0].ID, batch[2].ID, again.ID}
			assert.IsIncreasing(t, ids)

			var got []gormid.Order
			require.NoError(t, db.Preload("Lines").Order("id").Find(&got, "id > 7").Error)
			for i := range got[1:] {
				got[i+1].Lines = nil // there are none, and not nil
			}
			assert.Equal(t, []gormid.Order{one, *batch[0], *batch[2], again}, got)
			require.NoError(t, gormid.IDs.Close())
			assert.ErrorIs(t, db.Create(&gormid.Order{}).Error, generator.ErrClosed)
		})
	}
}

package databases_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/tickflake/tickflake/examples/databases/gormid"
	"github.com/tickflake/tickflake/examples/internal/exampletest"
	"github.com/tickflake/tickflake/integration/servers"
	"github.com/tickflake/tickflake/snowflake"
)

// Each row has an ID of the generator, in their order, and is found by it.
func TestGorm(t *testing.T) {
	gormid.IDs = exampletest.IDs(t)
	db, err := gorm.Open(postgres.Open(servers.For(t, servers.PostgreSQL).URL), &gorm.Config{Logger: logger.Discard})
	require.NoError(t, err)
	pool, err := db.DB()
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, db.AutoMigrate(&gormid.Order{}, &gormid.Line{}))
	one := gormid.Order{Customer: "ada", Lines: []gormid.Line{{Article: "pen"}, {Article: "ink"}}}
	require.NoError(t, db.Create(&one).Error)
	require.Error(t, db.Create(&one).Error, "a transaction that is tried again keeps its ID")
	two := gormid.Order{Customer: "dan", Replaces: &one.ID}
	require.NoError(t, db.Create(&two).Error)
	assert.IsIncreasing(t, []snowflake.ID{0, one.ID, one.Lines[0].ID, one.Lines[1].ID, two.ID})
	var got []gormid.Order
	require.NoError(t, db.Preload("Lines").Order("id").Find(&got).Error)
	got[1].Lines = nil // there are none, and not nil
	assert.Equal(t, []gormid.Order{one, two}, got)
}

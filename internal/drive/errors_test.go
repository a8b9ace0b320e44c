package drive_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/cell"
	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestErrorsOfBoth(t *testing.T) {
	busy := drive.Busy("text")
	require.EqualError(t, busy, "text")
	require.ErrorIs(t, busy, drive.ErrStore)
	require.ErrorIs(t, busy, stores.ErrConflict)

	sentinel := errors.New("it was moved")
	moved := drive.Moved(sentinel, &cell.Move{To: "the new store"})
	require.ErrorIs(t, moved, sentinel)
	require.ErrorContains(t, moved, "it was moved to the new store, and")
	require.ErrorContains(t, drive.Moved(sentinel, &cell.Move{To: "etcd://user:s3cr3t@h"}), "to another store, and")

	require.Equal(t, "a; b; c", drive.OneLine(errors.New("a\r\nb\rc")))

	require.True(t, drive.IsNil(nil))
	require.True(t, drive.IsNil((*storetest.Memory)(nil)), "a nil pointer in an interface")
	require.False(t, drive.IsNil(storetest.NewMemory()))
	require.False(t, drive.IsNil(""))
}

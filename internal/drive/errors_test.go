package drive_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/internal/drive"
	"github.com/tickflake/tickflake/stores"
	"github.com/tickflake/tickflake/stores/storetest"
)

func TestErrorsOfBoth(t *testing.T) {
	busy := drive.Busy("text")
	require.EqualError(t, busy, "text")
	require.ErrorIs(t, busy, drive.ErrStore)
	require.ErrorIs(t, busy, stores.ErrConflict)

	require.Equal(t, "a; b; c", drive.OneLine(errors.New("a\r\nb\rc")))

	require.True(t, drive.IsNil(nil))
	require.True(t, drive.IsNil((*storetest.Memory)(nil)), "a nil pointer in an interface")
	require.False(t, drive.IsNil(storetest.NewMemory()))
	require.False(t, drive.IsNil(""))
}

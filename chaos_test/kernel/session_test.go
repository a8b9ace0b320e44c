package kernel

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
)

// A machine that hangs while it boots is booted once more, and then the error says where
// its processors are.
func TestBootThatHangs(t *testing.T) {
	Needs(t)
	defer func(d time.Duration) { bootLimit = d }(bootLimit)
	bootLimit = time.Millisecond
	var progress []string
	b := &bench{dir: t.TempDir(), o: Options{Progress: func(_, text string) { progress = append(progress, text) }}}
	var err error
	b.o.Kernel, err = machine.Find()
	require.NoError(t, err)
	_, err = b.boot(t.Context(), "none", machine.Config{})
	require.ErrorIs(t, err, errHangs)
	assert.ErrorContains(t, err, "IP=")
	require.Len(t, progress, 3)
	assert.Equal(t, "boots a machine", progress[0])
	assert.True(t, strings.HasPrefix(progress[1], "boot a machine: the machine hangs"), progress[1])
	assert.Equal(t, "boots a machine", progress[2])
}

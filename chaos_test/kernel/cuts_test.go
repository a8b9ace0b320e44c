package kernel

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/powercut"
)

// A disk that ignores flushes loses acknowledged writes, and the suite says so.
func TestPowerCutsOfDeafDisk(t *testing.T) {
	if !*AllFlag {
		t.Skip("only with -kernel.all: it takes half a minute")
	}
	Needs(t)
	b := &bench{o: Options{Seed: 3, Cuts: 5, Progress: func(f, s string) { t.Log(f, s) }}, dir: t.TempDir()}
	var err error
	b.o.Kernel, err = machine.Find()
	require.NoError(t, err)
	faults := guest.List()
	fault := faults[slices.IndexFunc(faults, func(f guest.Fault) bool { return f.Name == powercut.Prefix+"ext4" })]
	out, err := cutPower(t.Context(), b, fault, "ext4", true)
	require.NoError(t, err)
	assert.NotEmpty(t, out.rows[0].Broken)
	t.Log(out.rows[0].Broken)
}

package kernel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/chaos_test/kernel/internal/guest"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/machine"
	"github.com/tickflake/tickflake/chaos_test/kernel/internal/powercut"
)

// Many power cuts, by hand. TestFaults has a few.
func TestPowerCuts(t *testing.T) {
	if *CutsFlag == 0 {
		t.Skip("only with -kernel.cuts: TestFaults has 3 on each file system")
	}
	Needs(t)
	for _, kind := range powercut.FileSystems {
		t.Run(kind, func(t *testing.T) {
			r, err := Run(t.Context(), Options{Faults: []string{powercut.Prefix + kind}, Cuts: *CutsFlag, Seed: 1, Log: *LogFlag, Progress: func(f, s string) { t.Log(f, s) }})
			require.NoError(t, err)
			require.Len(t, r.Rows, 1)
			assert.Empty(t, r.Rows[0].Broken)
			assert.Zero(t, r.Rows[0].Verdict.Duplicates)
			assert.NotZero(t, r.Rows[0].Verdict.IDs)
		})
	}
}

// A disk that ignores flushes loses acknowledged writes, and the bench says so.
func TestPowerCutsOfDeafDisk(t *testing.T) {
	if !*AllFlag {
		t.Skip("only with -kernel.all: it takes half a minute")
	}
	Needs(t)
	b := &bench{o: Options{Seed: 3, Cuts: 5, Progress: func(f, s string) { t.Log(f, s) }}, dir: t.TempDir()}
	var err error
	b.o.Kernel, err = machine.Find()
	require.NoError(t, err)
	var fault guest.Fault
	for _, f := range guest.Faults() {
		if f.Name == powercut.Prefix+"ext4" {
			fault = f
		}
	}
	out, err := cutPower(t.Context(), b, fault, "ext4", true)
	require.NoError(t, err)
	assert.NotEmpty(t, out.rows[0].Broken)
	t.Log(out.rows[0].Broken)
}

package realkernel

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// A generator that a reader added meets the faults as one of the peers.
func TestYoursMeetsTheFaults(t *testing.T) {
	yours.Add(yours.Generator{Name: "yours", Tick: time.Millisecond, PerTick: 1, Slot: func(id int64) int64 { return id },
		New: func(yours.Clock) (func() (int64, error), error) {
			return func() (int64, error) { return 7, nil }, nil
		}})
	AddYours()
	assert.True(t, slices.ContainsFunc(kernel.Subjects(), func(s kernel.SubjectInfo) bool { return s.Name == "yours" && s.Group == kernel.Peers }))
}

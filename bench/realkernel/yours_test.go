package realkernel

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tickflake/tickflake/bench/yours"
	"github.com/tickflake/tickflake/chaos_test/kernel"
)

// A generator that a reader added meets the faults as one of the peers.
func TestYoursMeetsTheFaults(t *testing.T) {
	yours.Add(yours.Mine())
	AddYours()
	assert.True(t, slices.ContainsFunc(kernel.Subjects(), func(s kernel.SubjectInfo) bool { return s.Name == "yours" && s.Group == kernel.Peers }))
}

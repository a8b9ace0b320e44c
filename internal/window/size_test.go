package window

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// TestWordIsAlone guards that a word that is written with every ID does not disturb the
// fields that are read with every ID.
func TestWordIsAlone(t *testing.T) {
	var s slots
	assert.GreaterOrEqual(t, unsafe.Offsetof(s.free), uintptr(cacheLine))
	assert.GreaterOrEqual(t, unsafe.Offsetof(s.soft)-unsafe.Offsetof(s.free), uintptr(cacheLine))
}

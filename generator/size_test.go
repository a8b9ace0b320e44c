package generator

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestGeneratorIsSmall(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Generator{}), uintptr(512))
}

// A word that is written with every ID must not disturb the fields that are read
// with every ID.
func TestWordIsAlone(t *testing.T) {
	var word tenure
	assert.GreaterOrEqual(t, unsafe.Offsetof(word.free), uintptr(cacheLine))
	assert.GreaterOrEqual(t, unsafe.Offsetof(word.last)-unsafe.Offsetof(word.free), uintptr(cacheLine))
	var g Generator
	assert.GreaterOrEqual(t, unsafe.Offsetof(g.counters)-unsafe.Offsetof(g.news)-unsafe.Sizeof(g.news), uintptr(cacheLine))
}

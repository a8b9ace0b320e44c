package generator

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestGeneratorIsSmall(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Generator{}), uintptr(512))
}

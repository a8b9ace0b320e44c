package generator

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestGeneratorIsSmall(t *testing.T) {
	t.Log(unsafe.Sizeof(Generator{}), unsafe.Offsetof(Generator{}.free), unsafe.Sizeof(Stream{}))
	assert.LessOrEqual(t, unsafe.Sizeof(Generator{}), uintptr(512))
}

package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInspect(t *testing.T) {
	m := inspect().end()
	assert.Equal(t, runtime.Version(), m.Go)
	assert.Equal(t, runtime.GOMAXPROCS(0), m.Cores)
	assert.NotEmpty(t, m.CPU)
	assert.Contains(t, m.OS, runtime.GOARCH)
	assert.GreaterOrEqual(t, m.Stolen, 0.0)
	assert.LessOrEqual(t, m.Stolen, 100.0)
}

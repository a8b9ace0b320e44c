package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCopiesAreCurrent fails when monoclock or generator were changed and their
// copies were not.
func TestCopiesAreCurrent(t *testing.T) {
	want, err := copies(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(t, err, "run go generate in internal/simulation")
		assert.Equal(t, string(text), string(got), "%s: run go generate in internal/simulation", name)
	}
	there, err := filepath.Glob(filepath.Join("..", "core", "*", "*.go"))
	require.NoError(t, err)
	assert.Len(t, there, len(want), "left over: run go generate in internal/simulation")
}

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that is being written is read when it is whole, although a part of it is a list of clients as well.
func TestFileChanged(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "serve.yaml")}
	write := func(text string) { require.NoError(t, os.WriteFile(f.path, []byte(text), 0o600)) }
	const one, two = "clients:\n- {name: a, token-file: token}\n", "- {name: b, token-file: token}\n"
	write(one)
	_, err := f.read()
	require.NoError(t, err)
	_, _ = f.clients()
	assert.False(t, f.changed())
	assert.False(t, f.changed(), "it is as it was read")
	write("clients:\n")
	assert.False(t, f.changed())
	write(one + two)
	assert.False(t, f.changed(), "it has changed since the last look")
	assert.True(t, f.changed())
	assert.True(t, f.changed())
}

package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program that the machine cannot run is found before it boots.
func TestLibraries(t *testing.T) {
	program := []byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 57)) // 64 bits, little-endian
	copy(program[16:], "\x02\x00\x3e\x00\x01")                            // a program, of x86-64
	program[25] = 0x10                                                    // the entry
	arm, library := slices.Clone(program), slices.Clone(program)
	arm[18], library[25] = 183, 0
	for text, content := range map[string][]byte{"": program, "has no shell": []byte("#!/bin/sh\necho 1\n"), "is ET_EXEC for EM_AARCH64": arm, "needs a program": library} {
		path := filepath.Join(t.TempDir(), "program")
		require.NoError(t, os.WriteFile(path, content, 0o755))
		_, err := libraries(path)
		if text == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, text)
		}
	}
}

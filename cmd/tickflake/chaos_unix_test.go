//go:build unix

package main

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// As "| head" does it.
func TestClosedPipeEndsChaos(t *testing.T) {
	for _, args := range [][]string{
		{"chaos", "--strategy", "all", "--clock", "all"},
		{"chaos", "--strategy", "all", "--clock", "all", "--format", "json"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			r, w := pipe(t)
			cmd, stderr := process(t, nil, w, args...)
			w.Close()
			_, err := bufio.NewReader(r).ReadString('\n')
			require.NoError(t, err)
			r.Close()
			assert.Equal(t, 0, exitCode(cmd))
			assert.Empty(t, stderr.String())
		})
	}
}

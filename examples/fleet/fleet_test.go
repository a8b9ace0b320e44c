//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/examples/internal/exampletest"
)

// The command of the README: three workers, one of which is killed.
func TestREADME(t *testing.T) {
	out := exampletest.RunREADME(t, "A fleet on etcd")
	assert.Regexp(t, `(?m)^worker 2 was killed, and had node \d+$`, out)
	assert.Regexp(t, `(?m)^\d{4,} IDs by 4 processes, none twice$`, out)

	node := make(map[string]string) // by worker
	for _, m := range regexp.MustCompile(`worker (\d) has issued \d+ IDs, on node (\d+)`).FindAllStringSubmatch(out, -1) {
		node[m[1]] = m[2]
	}
	require.Len(t, node, 4)
	for worker, n := range node {
		state := "released"
		if worker == "2" {
			state = "(held|expired)" // it was not released: whether its grant still lasts depends on the machine
		}
		assert.Regexp(t, "(?m)^node "+n+": "+state+",", out)
	}
}

func TestMain(m *testing.M) { exampletest.Main(m) }

// IDs that come twice are found: "none twice" says something.
func TestRepeatedIDs(t *testing.T) {
	worker := filepath.Join(t.TempDir(), "worker")
	require.NoError(t, os.WriteFile(worker, []byte("#!/bin/sh\nseq 1 1000\nexec sleep 1000\n"), 0o700))
	p := exampletest.Start(t, exampletest.Build(t, "./fleet"), "--worker", worker)
	assert.Equal(t, 1, p.Wait())
	assert.Regexp(t, `ID \d+ came twice`, p.Stderr())
	assert.NotContains(t, p.Stdout(), "none twice")
}

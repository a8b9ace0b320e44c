package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the path of the command that TestMain builds; signals and closed
// pipes need a process of its own.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// testMain sees to it that no test writes to the user's own state.
func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tickflake")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "tickflake.exe")
	if output, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%s\n", output, err)
		return 1
	}
	for _, name := range []string{"XDG_STATE_HOME", "HOME", "LocalAppData", "AppData"} {
		if err := os.Setenv(name, filepath.Join(dir, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	os.Unsetenv(storeVariable)
	return m.Run()
}

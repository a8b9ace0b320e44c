package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const asProgram = "SERVER_TEST_START"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		p, err := Start(context.Background(), Config{Path: "/bin/sleep", Args: []string{"600"}})
		fmt.Println(p.PID(), err)
		select {}
	}
	os.Exit(m.Run())
}

// Not even kill -9 of the program leaves its processes behind.
func TestProcessesEndWithTheProgram(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var pid int
	_, err = fmt.Fscanf(out, "%d <nil>\n", &pid)
	require.NoError(t, err)
	state := status(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	assert.Regexp(t, "[RSD]", state)
	assert.Eventually(t, func() bool {
		state := status(fmt.Sprintf("/proc/%d/stat", pid))
		return state == "" || state == "Z" // which waits for its new parent
	}, 30*time.Second, 10*time.Millisecond)
}

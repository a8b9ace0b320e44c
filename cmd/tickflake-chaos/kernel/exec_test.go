package kernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickflake/tickflake/cmd/tickflake-chaos/kernel/internal/guest"
)

// counterArg makes this program what lease exec runs in the machine.
const counterArg = "-kernel.counter"

// count issues IDs of the layout twitter by the wall clock, as a program of a user does: none below the floor, and it
// counts on while its clock is behind.
func count() {
	const epoch = 1288834974657
	node, _ := strconv.ParseInt(os.Getenv("LEASE_NODE"), 10, 64)
	floor, _ := strconv.ParseInt(os.Getenv("LEASE_FLOOR_MS"), 10, 64)
	for slot := (floor-epoch)<<12 - 1; ; time.Sleep(time.Millisecond) {
		slot = max(slot+1, (time.Now().UnixMilli()-epoch)<<12)
		if _, err := fmt.Println(slot>>12<<22 | node<<12 | slot&4095); err != nil {
			return
		}
	}
}

// TestExec runs lease exec on a kernel whose clock steps past the end of the grant, and back: the next program with the
// number issues no ID a second time.
func TestExec(t *testing.T) {
	if !*allFlag {
		t.Skip("it builds tickflake with all engines, and boots a machine of its own for a minute (-kernel.all)")
	}
	needsMachine(t)
	program := filepath.Join(t.TempDir(), "tickflake")
	build := exec.Command("go", "build", "-o", program, "-ldflags", "-s -w", "../../tickflake")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	r := run(t, Options{Faults: []string{"step-ahead-back-4s"}, Program: program, Args: []string{
		"lease", "exec", "--store", "state", "--layout", "twitter", "--node", "5", "--window", guest.ExecWindow.String(), "--timeout", "1m", "--", "/init", counterArg,
	}})
	require.Len(t, r.Rows, 1)
	require.Empty(t, r.Rows[0].Broken)
	require.Contains(t, r.Rows[0].Verdict.Error, "the clock was set ahead by 4s")
}

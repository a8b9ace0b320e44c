package program

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dieWithUs makes the system kill a process when we are killed, as by go test's timeout.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// descendants returns the ids of the children of a process, and of their
// descendants.
func descendants(pid int) []int {
	parents := make(map[int][]int)
	entries, _ := os.ReadDir("/proc") // without it, none are found
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if _, parent := status("/proc/" + entry.Name() + "/stat"); parent > 0 {
			parents[parent] = append(parents[parent], child)
		}
	}
	found := parents[pid]
	for i := 0; i < len(found); i++ {
		found = append(found, parents[found[i]]...)
	}
	return found
}

// status returns the state of a process or thread, and its parent; or "" if it has ended.
func status(path string) (state string, parent int) {
	stat, _ := os.ReadFile(path)
	// The name, in brackets, may hold anything. Then follow the state and the parent.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// awaitStop returns when all threads of a process that got SIGSTOP have stopped. Until then,
// which takes longer on a busy machine, they may still answer.
func awaitStop(pid int) {
	for range 5000 {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if !slices.ContainsFunc(threads, func(path string) bool {
			state, _ := status(path)
			return state != "" && !strings.Contains("TtZX", state)
		}) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
